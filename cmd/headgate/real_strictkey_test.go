package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/forward/forwardtest"
	"github.com/headgate-io/headgate/sdk/consume"
)

// strictEvent is an event as it is sent.
type strictEvent struct {
	K string
	N int
}

// dawdle has the node take time for the events of the hot key, until what it returns is closed.
func (n *node) dawdle(t *testing.T, each time.Duration) (quick chan struct{}) {
	quick = make(chan struct{})
	n.Judge(func(r *forward.Run) forwardtest.Answer {
		hot := 0
		err := consume.Decode(r.Payload, r.ContentEncoding, r.ContentType, func(e consume.Event) error {
			if string(e.Key) == hotKey {
				hot++
			}
			return nil
		})
		if err != nil {
			t.Errorf("a run: %v", err)
		}
		taken := make(chan struct{})
		go func() {
			defer close(taken)
			select {
			case <-time.After(time.Duration(hot) * each):
			case <-quick:
			}
		}()
		return forwardtest.Answer{After: taken}
	})
	return quick
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
	node := newNode(t)
	quick := node.dawdle(t, 40*time.Millisecond) // 25 a second
	p := startGateway(t, t.TempDir(),
		"--set", fmt.Sprintf("backends={lake: {webhook: {nodes: [%q], timeout: 5m}}}", node.URL),
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
	close(quick)
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
	node.check(t, c)
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
func (n *node) check(t *testing.T, c *strictClient) {
	rows, _ := n.rows(t)
	next, last, others, faults := 0, map[string]int{}, 0, 0
	for _, r := range rows {
		var e strictEvent
		if err := json.Unmarshal([]byte(r.Data), &e); err != nil {
			t.Fatalf("%s: %v", r.Data, err)
		}
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
		if ok {
			continue
		}
		if faults++; faults < 10 {
			t.Errorf("event %d of %s is not the next of its key", e.N, e.K)
		}
	}
	if next != c.hot || others != c.others || len(rows) != c.hot+c.others {
		t.Errorf("acknowledged: %d of the hot key and %d others; there are %d and %d, %d events in all", c.hot, c.others, next, others, len(rows))
	}
	t.Logf("hot key: %d taken, %d refused (%d requests in part, %d whole), %d lost or out of order; other keys: %d taken", c.hot, c.refused,
		c.partly, c.wholly, faults, c.others)
}
