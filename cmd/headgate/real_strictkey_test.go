package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate-io/headgate/sdk/consume"
)

// slowNode is an HTTP node that takes time for the events of one key, as long as it is slow, and keeps all events in the order
// in which it took them. What comes again under its number is known.
type slowNode struct {
	*httptest.Server
	t      *testing.T
	each   time.Duration
	quick  chan struct{} // closed: nothing takes time any more
	mu     sync.Mutex
	events []strictEvent
	lanes  map[uint32]uint64
}

// strictEvent is an event as it is sent.
type strictEvent struct {
	K string
	N int
}

func newSlowNode(t *testing.T, each time.Duration) *slowNode {
	n := &slowNode{t: t, each: each, quick: make(chan struct{}), lanes: map[uint32]uint64{}}
	n.Server = httptest.NewServer(n)
	t.Cleanup(n.Close)
	return n
}

// ServeHTTP takes a run.
func (n *slowNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	payload, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	var all []consume.Event
	err = consume.Decode(payload, r.Header.Get("Content-Encoding"), r.Header.Get("Content-Type"), func(e consume.Event) error {
		e.Data, e.Key = bytes.Clone(e.Data), bytes.Clone(e.Key)
		all = append(all, e)
		return nil
	})
	if err != nil {
		n.t.Errorf("a run: %v", err)
	}
	hot := countKey(all, hotKey)
	select {
	case <-time.After(time.Duration(hot) * n.each):
	case <-n.quick:
	case <-r.Context().Done():
		panic(http.ErrAbortHandler)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range all {
		if e.Number <= n.lanes[e.Partition] {
			continue
		}
		n.lanes[e.Partition] = e.Number
		var is strictEvent
		if err := json.Unmarshal(e.Data, &is); err != nil {
			n.t.Errorf("%s: %v", e.Data, err)
		}
		n.events = append(n.events, is)
	}
}

func countKey(all []consume.Event, key string) (n int) {
	for i := range all {
		if string(all[i].Key) == key {
			n++
		}
	}
	return n
}

// hotKey has strictHot events in each request, and others have strictOthers.
const (
	hotKey       = "hot"
	strictHot    = 20
	strictOthers = 10
)

// strictClient sends the events of each key in order: what was refused is what it sends first the next time.
type strictClient struct {
	p              *process
	hot            int // the next event of the hot key
	others         int
	partly, wholly int // answers that refuse events of a request, or all
	refused        int
	wrong          int
}

// send sends some events of the hot key, and of others.
func (c *strictClient) send(others int) {
	var body strings.Builder
	for i := range strictHot {
		fmt.Fprintf(&body, `{"k":%q,"n":%d}`+"\n", hotKey, c.hot+i)
	}
	for i := range others {
		fmt.Fprintf(&body, `{"k":"k%d","n":%d}`+"\n", (c.others+i)%400, c.others+i)
	}
	resp, err := http.Post(c.p.http+"/v1/streams/s/events", "application/x-ndjson", strings.NewReader(body.String()))
	if err != nil {
		c.p.t.Fatalf("%v; log:\n%s", err, c.p.log)
	}
	defer resp.Body.Close()
	var a struct {
		Accepted  int
		Code      string
		Retryable bool
		Errors    []struct {
			Index     int
			Code      string
			Retryable bool
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
		c.p.t.Fatal(err)
	}
	refused := len(a.Errors)
	for i, e := range a.Errors { // the last ones of the hot key, so that none overtakes; none of another
		if e.Index != strictHot-refused+i || e.Code != "key_rate" || !e.Retryable {
			c.fault("%d: error %d of %d is %+v", resp.StatusCode, i, refused, e)
		}
	}
	again, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	switch resp.StatusCode {
	case 200:
		if refused > 0 || a.Accepted != strictHot+others {
			c.fault("200: %+v", a)
		}
	case 207:
		c.partly++
		if again < 1 || a.Accepted != strictHot+others-refused {
			c.fault("207, Retry-After %d: %+v", again, a)
		}
	case 429:
		c.wholly++
		if again < 1 || others > 0 || a.Code != "key_rate" || !a.Retryable || refused != strictHot {
			c.fault("429, Retry-After %d: %+v", again, a)
		}
	default:
		c.p.t.Fatalf("%d; log:\n%s", resp.StatusCode, c.p.log)
	}
	c.hot, c.others, c.refused = c.hot+strictHot-refused, c.others+others, c.refused+refused
}

func (c *strictClient) fault(format string, args ...any) {
	if c.wrong++; c.wrong < 10 {
		c.p.t.Errorf(format, args...)
	}
}

// K08: a key with one order brings more than its partition takes. That is measured, and from then on what is too much of that key is
// refused, in requests with others and in such without, with a Retry-After; every event of another key is taken. What was taken is
// there when all is delivered, once and in the order of its key, in which nothing is missing.
func TestK08StrictKeyOverItsPartitionLeavesTheOthersAlone(t *testing.T) {
	node := newSlowNode(t, 40*time.Millisecond) // 25 a second
	p := startGateway(t, t.TempDir(),
		"--set", fmt.Sprintf("backends={lake: {webhook: {nodes: [%s], timeout: 5m}}}", node.URL),
		"--set", "streams={s: {backend: lake, key: {json: /k}, partitions: 4, ordering: strict, adaptive: {hold: 1s}}}")
	c := &strictClient{p: p}
	turn := time.NewTicker(20 * time.Millisecond)
	defer turn.Stop()
	p.until("requests are refused in part, and whole", func() bool {
		c.send(strictOthers)
		if c.partly > 0 {
			c.send(0)
		}
		<-turn.C
		return c.partly >= 10 && c.wholly >= 10
	})
	limits := p.limits()
	if first := limits[len(limits)-1]; first.Key != hotKey || !strings.Contains(first.Reason, "whose backlog grows") {
		t.Errorf("%+v", limits)
	}
	close(node.quick)
	p.drained()
	p.until("the key has no limit any more", func() bool { return p.limits()[0].Kind == "unlimit" })
	before := c.refused
	if c.send(strictOthers); c.refused != before {
		t.Errorf("%d are refused without a limit", c.refused-before)
	}
	p.drained()
	if code := p.terminate(); code != 0 {
		t.Errorf("exit %d\n%s", code, p.log)
	}
	node.check(c)
}

// limitChange is what the history of a table says of a limit.
type limitChange struct {
	Kind, Key, Reason string
	Limit             float64
}

// limits are the changes of limits so far, the last one first.
func (p *process) limits() (all []limitChange) {
	var t struct{ History []limitChange }
	if err := json.Unmarshal([]byte(p.get("/v1/streams/s/table")), &t); err != nil {
		p.t.Error(err)
	}
	for _, h := range t.History {
		if h.Kind == "limit" || h.Kind == "unlimit" {
			all = append(all, h)
		}
	}
	return all
}

// check compares what the node has with what was acknowledged.
func (n *slowNode) check(c *strictClient) {
	n.mu.Lock()
	defer n.mu.Unlock()
	next, last, others, faults := 0, map[string]int{}, 0, 0
	for _, e := range n.events {
		ok := true
		if e.K == hotKey {
			ok = e.N == next
			next = e.N + 1
		} else {
			was, known := last[e.K]
			ok = !known || e.N == was+400
			last[e.K] = e.N
			others++
		}
		if faults++; ok {
			faults--
		} else if faults < 10 {
			n.t.Errorf("event %d of %s is not the next of its key", e.N, e.K)
		}
	}
	if next != c.hot || others != c.others || len(n.events) != c.hot+c.others {
		n.t.Errorf("acknowledged: %d of the hot key and %d others; there are %d and %d, %d events in all", c.hot, c.others, next, others, len(n.events))
	}
	n.t.Logf("hot key: %d taken, %d refused (%d requests in part, %d whole), %d lost or out of order; other keys: %d taken, 0 refused", c.hot, c.refused,
		c.partly, c.wholly, faults, c.others)
}
