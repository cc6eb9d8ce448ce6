package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/sdk/consume"
	"github.com/headgate-io/headgate/sdk/wire"
)

// live is a gateway under load, whose hot key comes and goes, and which may be killed meanwhile.
type live struct {
	t        *testing.T
	ordering string
	sources  int
	pace     time.Duration // between two requests of a source
	total    atomic.Int64  // events to be sent, at least; playLive may go on for longer

	data     string
	settings []string
	more     string // of the stream's definition
	now      atomic.Pointer[process]
	hot      atomic.Pointer[string] // nil: there is none
	sent     atomic.Int64
	over     chan struct{}

	mu     sync.Mutex
	splits map[string]time.Time // when the watch told that a key is split
	merged map[string]bool
	grown  int
	notes  map[string]int  // why nothing changed, and what else is told
	took   []time.Duration // of requests
	ticks  []time.Duration // how late a timer of 10 ms was in this process: what the machine is good for
	loads  []float64       // max over mean, as the watch tells it each second
	stalls map[string]int  // events that were parked, by upper bound in seconds, of all processes
}

// liveEvents is how many events a request has, of which liveHot have the hot key.
const liveEvents, liveHot = 25, 10

func newLive(t *testing.T, ordering string, sources int, total int64) *live {
	l := &live{t: t, ordering: ordering, sources: sources, data: t.TempDir(), over: make(chan struct{}),
		splits: map[string]time.Time{}, merged: map[string]bool{}, stalls: map[string]int{}, notes: map[string]int{}}
	l.total.Store(total)
	return l
}

func (l *live) start() {
	l.now.Store(startGateway(l.t, l.data, append(l.settings, "--set", "streams={s: "+l.definition("")+"}")...))
}

// definition is that of the stream.
func (l *live) definition(more string) string {
	return fmt.Sprintf("{key: {json: /k}, id: {json: /id, window: {ids: 2000000}}, partitions: 8, ordering: %s, adaptive: {hold: 1s}%s%s}", l.ordering, l.more, more)
}

// source sends until enough is sent, each request again until it is answered: with the same ids, so that nothing comes twice.
func (l *live) source(number int, client *http.Client) {
	name := fmt.Sprint("source-", number)
	r := rand.New(rand.NewPCG(7, uint64(number)))
	for n := 0; l.sent.Load() < l.total.Load(); {
		var body bytes.Buffer
		for i := range liveEvents {
			key := fmt.Sprint("k", r.IntN(5000))
			if hot := l.hot.Load(); hot != nil && i < liveHot {
				key = *hot
			}
			fmt.Fprintf(&body, `{"id":"%s-%d","k":%q,"s":%d,"n":%d,"remote_ip":%q,"response":200,"pad":"0123456789"}`+"\n", name, n, key, number, n, key)
			n++
		}
		l.insist(client, name, body.Bytes())
		l.sent.Add(liveEvents)
		<-time.After(l.pace)
	}
}

// baton writes one key under two names in turn, each request behind the answer to the one before: with ordering strict all of
// it has one order.
func (l *live) baton(client *http.Client) {
	for n := 0; l.sent.Load() < l.total.Load(); n++ {
		l.insist(client, fmt.Sprint("baton-", n%2), fmt.Appendf(nil, `{"id":"baton-%d","k":"baton","s":-1,"n":%[1]d,"remote_ip":"baton","response":200}`+"\n", n))
		l.sent.Add(1)
		<-time.After(l.pace / 4)
	}
}

func (l *live) insist(client *http.Client, name string, body []byte) {
	for {
		req, err := http.NewRequest("POST", l.now.Load().http+"/v1/streams/s/events", bytes.NewReader(body))
		if err != nil {
			panic(err)
		}
		req.Header.Set("Content-Type", "application/x-ndjson")
		req.Header.Set("Headgate-Source", name)
		began := time.Now()
		if resp, err := client.Do(req); err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if err == nil && resp.StatusCode == 200 {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.took = append(l.took, time.Since(began))
				return
			}
		}
		<-time.After(20 * time.Millisecond)
	}
}

// watch follows /v1/watch, of one process after the other.
func (l *live) watch() {
	for {
		if resp, err := http.Get(l.now.Load().admin + "/v1/watch?stream=s"); err == nil {
			l.follow(resp.Body)
		}
		select {
		case <-l.over:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (l *live) follow(body io.ReadCloser) {
	defer body.Close()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-l.over:
			body.Close()
		case <-stop:
		}
	}()
	for lines := bufio.NewScanner(body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e struct {
			Kind, Outcome, Key, Reason string
			MaxOverMean                float64 `json:"max_over_mean"`
		}
		if json.Unmarshal([]byte(data), &e) != nil {
			continue
		}
		l.mu.Lock()
		switch {
		case e.MaxOverMean > 0:
			l.loads = append(l.loads, e.MaxOverMean)
		case e.Kind == "note":
			l.notes[e.Reason]++
		case e.Outcome == "abandoned":
			l.notes["abandoned"]++
		case e.Kind == "split" && e.Key == "":
			l.notes["split of a key whose name is not known"]++
		case e.Kind == "split":
			if l.splits[e.Key].IsZero() {
				l.splits[e.Key] = time.Now()
			}
		case e.Kind == "merge":
			l.merged[e.Key] = true
		case e.Kind == "grow":
			l.grown++
		}
		l.mu.Unlock()
	}
}

// tick measures what the machine makes of 10 ms.
func (l *live) tick() {
	for {
		began := time.Now()
		select {
		case <-l.over:
			return
		case <-time.After(10 * time.Millisecond):
		}
		l.mu.Lock()
		l.ticks = append(l.ticks, time.Since(began)-10*time.Millisecond)
		l.mu.Unlock()
	}
}

// share sorts durations and returns the one that a share of them is below.
func share(all []time.Duration, of float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[int(of*float64(len(all)-1))].Round(time.Millisecond)
}

func (l *live) splitAt(key string) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.splits[key]
}

func (l *live) wasSplit() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.splits) > 0
}

func (l *live) load() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.loads) == 0 {
		return 1
	}
	return l.loads[len(l.loads)-1]
}

// table is what /table says of splits.
func (l *live) table() (keys []string) {
	var t struct{ Splits []struct{ Key string } }
	p := l.now.Load()
	if err := json.Unmarshal([]byte(p.get("/v1/streams/s/table")), &t); err != nil {
		l.t.Fatal(err)
	}
	for _, s := range t.Splits {
		keys = append(keys, s.Key)
	}
	return keys
}

// note adds what a process has counted of stalls.
func (l *live) note() {
	for line := range strings.Lines(l.now.Load().get("/metrics")) {
		rest, ok := strings.CutPrefix(line, `headgate_parked_seconds_bucket{stream="s",le="`)
		if !ok {
			continue
		}
		bound, count, _ := strings.Cut(strings.TrimSpace(rest), `"} `)
		n, _ := strconv.ParseFloat(count, 64)
		l.stalls[bound] += int(n)
	}
}

// stall is the upper bound of a share of the stalls, in milliseconds.
func (l *live) stall(share float64) (ms float64, all int) {
	all = l.stalls["+Inf"]
	bounds := slices.SortedFunc(maps.Keys(l.stalls), func(a, b string) int { return cmp.Compare(boundSeconds(a), boundSeconds(b)) })
	for _, b := range bounds {
		if float64(l.stalls[b]) >= share*float64(all) {
			return 1000 * boundSeconds(b), all
		}
	}
	return 0, all
}

func boundSeconds(bound string) float64 { s, _ := strconv.ParseFloat(bound, 64); return s }

// lanes reads the frames of each partition.
func (l *live) lanes(partitions int) (all [][][]byte) {
	for p := range partitions {
		req, _ := http.NewRequest("GET", fmt.Sprintf("%s/v1/streams/s/events?from=start&follow=false&partition=%d", l.now.Load().admin, p), nil)
		req.Header.Set("Accept", "application/octet-stream")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			l.t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 200 {
			l.t.Fatalf("partition %d: %d, %v", p, resp.StatusCode, err)
		}
		var frames [][]byte
		for rest := body; len(rest) > 0; {
			before := rest
			if _, _, rest, err = wire.SplitFrame(rest, "zstd"); err != nil {
				l.t.Fatal(err)
			}
			frames = append(frames, before[:len(before)-len(rest)])
		}
		all = append(all, frames)
	}
	return all
}

// liveCheck looks at events in the order in which a consumer gets them.
type liveCheck struct {
	t    *testing.T
	live *live
	seen map[[2]int]bool
	last map[string]int
	bad  int
}

func (c *liveCheck) add(e consume.Event) error {
	var is struct {
		K    string
		S, N int
	}
	if err := json.Unmarshal(e.Data, &is); err != nil {
		return err
	}
	id := [2]int{is.S, is.N}
	if c.seen[id] {
		c.wrong("event %d of source %d is there twice", is.N, is.S)
	}
	c.seen[id] = true
	if c.live.ordering == "none" {
		return nil
	}
	of := is.K + " " + string(e.Source) // the producer
	if c.live.ordering == "strict" {
		of = fmt.Sprint(is.K, " ", is.S) // of the baton also over its producers
	}
	if n, ok := c.last[of]; ok && is.N <= n {
		c.wrong("%s: event %d behind %d (partition %d, child %d, epoch %d)", of, is.N, n, e.Partition, e.Child, e.Epoch)
	}
	c.last[of] = is.N
	return nil
}

func (c *liveCheck) wrong(format string, args ...any) {
	if c.bad++; c.bad <= 10 {
		c.t.Errorf(format, args...)
	}
}

// check reads all of it in a mix of lanes that is drawn, with a reader that ends now and then and goes on from where it was.
func (l *live) check(lanes [][][]byte) (s consume.OrderStats, restarts int) {
	c := &liveCheck{t: l.t, live: l, seen: map[[2]int]bool{}, last: map[string]int{}}
	order := consume.NewOrder(consume.OrderConfig{Limit: 1 << 30}, c.add)
	gateway := ""
	if doc, err := os.ReadFile(l.data + "/id"); err == nil {
		gateway = strings.TrimSpace(string(doc))
	}
	at := make([]int, len(lanes))
	r := rand.New(rand.NewPCG(1, 2))
	left := 0
	for _, frames := range lanes {
		left += len(frames)
	}
	restart := max(1, left/3)
	for steps := 0; ; steps++ {
		var open []int
		for p := range lanes {
			if at[p] < len(lanes[p]) {
				open = append(open, p)
			}
		}
		if len(open) == 0 {
			break
		}
		p := open[r.IntN(len(open))]
		for range 1 + r.IntN(20) {
			if at[p] == len(lanes[p]) {
				break
			}
			if err := order.Add(lanes[p][at[p]], "zstd", wire.TypeNDJSON); err != nil {
				l.t.Fatal(err)
			}
			at[p]++
		}
		if restarts < 2 && steps*10 > restart*(restarts+1) { // what waited is read again
			restarts++
			s.Waited += order.Stats().Waited
			again := consume.NewOrder(consume.OrderConfig{Limit: 1 << 30}, c.add)
			for p := range lanes {
				lane := consume.Lane{Stream: "s", Partition: uint32(p), Gateway: gateway}
				again.Start(lane, order.At(lane))
				at[p] = max(0, at[p]-r.IntN(200))
			}
			for p := range lanes {
				if order.Stats().Waiting > 0 {
					at[p] = 0
				}
			}
			order = again
		}
	}
	if blocked := order.Blocked(); len(blocked) > 0 {
		l.t.Errorf("the consumer waits for ever: %+v", blocked)
	}
	if int64(len(c.seen)) != l.sent.Load() {
		l.t.Errorf("%d events were acknowledged, %d are there", l.sent.Load(), len(c.seen))
	}
	if c.bad > 0 {
		l.t.Errorf("%d faults", c.bad)
	}
	s.Events, s.Waited = uint64(len(c.seen)), s.Waited+order.Stats().Waited
	return s, restarts
}

// run sends, and has play do the rest until it is done.
func (l *live) run(play func()) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: l.sources + 1}, Timeout: 20 * time.Second}
	var sending, watching sync.WaitGroup
	watching.Go(l.watch)
	for n := range l.sources {
		sending.Go(func() { l.source(n, client) })
	}
	sending.Go(func() { l.baton(client) })
	watching.Go(l.tick)
	play()
	sending.Wait()
	client.CloseIdleConnections()
	if l.ordering != "strict" {
		l.now.Load().until("all keys are merged", func() bool { return len(l.table()) == 0 })
	}
	l.now.Load().drained()
	l.note()
	close(l.over)
	watching.Wait()
}

// A key gets hot in the real gateway, is split, and merged when it is not any more; a reader of the partitions finds every event, once,
// and those of each key and source in their order.
func TestAHotKeyIsSplitAndMergedAgain(t *testing.T) {
	l := newLive(t, "source", 12, 1<<62)
	l.start()
	key := "hot-0"
	l.run(func() {
		l.hot.Store(&key)
		p := l.now.Load()
		p.until("split, as /v1/watch and /table say", func() bool { return !l.splitAt(key).IsZero() && slices.Contains(l.table(), key) })
		l.hot.Store(nil)
		p.kill()
		l.start()
		l.now.Load().until("merged, also over a kill", func() bool { return len(l.table()) == 0 })
		l.total.Store(0)
	})
	s, _ := l.check(l.lanes(8))
	t.Logf("%d events, %d frames waited for others", s.Events, s.Waited)
}

// HEADGATE_LIVE=n runs n events at least, with each ordering, with a key that has 40 % of them, of 120 sources: `make test-live`.
func TestLive(t *testing.T) {
	total, err := strconv.ParseInt(os.Getenv("HEADGATE_LIVE"), 10, 64)
	if err != nil {
		t.Skip("make test-live runs it")
	}
	for _, of := range []struct {
		ordering string
		events   int64
		kills    int
	}{{"source", total, 0}, {"source", total / 2, 4}, {"strict", total / 4, 1}, {"none", total / 4, 1}} {
		t.Run(fmt.Sprintf("%s, %d kills", of.ordering, of.kills), func(t *testing.T) {
			playLive(newLive(t, of.ordering, 120, of.events), of.kills, nil)
		})
	}
}

// A fast machine has sent few events before a key is split: so a key gets hot liveRounds times at least, and livePatience times
// at most where none is split in time.
const liveRounds, livePatience = 3, 20

// playLive lets a key get hot again and again, until enough is sent, kills the gateway so often, and has disturb do what it does
// until over is closed.
func playLive(l *live, kills int, disturb func(over <-chan struct{})) {
	t, ordering, events := l.t, l.ordering, l.total.Load()
	l.pace = 120 * time.Millisecond
	l.total.Store(1 << 62) // until all that is to happen has
	l.start()
	over := make(chan struct{})
	var disturbing sync.WaitGroup
	if disturb != nil {
		disturbing.Go(func() { disturb(over) })
	}
	var times []time.Duration
	var before, after []float64
	began, rounds, killed, late := time.Now(), 0, 0, 0
	done := func() bool {
		return l.sent.Load() >= events && rounds >= liveRounds && killed == kills && (ordering == "strict" || l.wasSplit() || late >= livePatience)
	}
	wait := func(d time.Duration, ok func() bool) bool {
		for end := time.Now().Add(d); time.Now().Before(end) && !done(); <-time.After(5 * time.Millisecond) {
			if ok() {
				return true
			}
		}
		return false
	}
	never := func() bool { return false }
	l.run(func() {
		wait(2*time.Second, never)
		for ; !done(); rounds++ {
			key := fmt.Sprint("hot-", rounds)
			onset := time.Now()
			l.hot.Store(&key)
			if ordering != "strict" && wait(5*time.Second, func() bool { return !l.splitAt(key).IsZero() }) {
				times = append(times, l.splitAt(key).Sub(onset))
				before = append(before, l.load())
			} else if ordering != "strict" && !done() {
				late++
			}
			if killed < kills && l.sent.Load() > events*int64(killed+1)/int64(kills+2) {
				wait(time.Duration(rand.IntN(800))*time.Millisecond, never)
				killed++
				l.note()
				l.now.Load().kill()
				l.start()
			}
			wait(2*time.Second, never)
			after = append(after, l.load())
			l.hot.Store(nil)
			wait(time.Second, never)
		}
		close(over)
		disturbing.Wait()
		l.total.Store(0)
	})
	took := time.Since(began)
	s, restarts := l.check(l.lanes(8))
	p50, parked := l.stall(0.5)
	p99, _ := l.stall(0.99)
	t.Logf("%d events of %d sources in %.0f s (%.0f/s), %d kills: nothing lost or doubled unless it says so above; %d frames waited for others, %d reader restarts",
		s.Events, l.sources, took.Seconds(), float64(s.Events)/took.Seconds(), killed, s.Waited, restarts)
	if len(times) > 0 {
		t.Logf("onset to split in /v1/watch: %d onsets, %d not in 5 s; p50 %v, p99 %v (target 0.6 s), all %v", len(times), late,
			share(times, 0.5), share(times, 0.99), times)
	}
	hot := float64(liveHot) / liveEvents
	t.Logf("max/mean: %.2f if the key stayed whole; when split %.2f, 2 s later %.2f; %d keys grown, %d merged", 8*hot+1-hot, before, after, l.grown, len(l.merged))
	t.Logf("events parked %d: for at most %.0f ms (p50), %.0f ms (p99; target 50)", parked, p50, p99)
	t.Logf("beside it: requests took %v (p50), %v (p99); a timer of 10 ms was late by %v (p50), %v (p99); notes %v",
		share(l.took, 0.5), share(l.took, 0.99), share(l.ticks, 0.5), share(l.ticks, 0.99), l.notes)
	if ordering != "strict" && !l.wasSplit() {
		t.Error("nothing was split: the test tested nothing")
	}
}
