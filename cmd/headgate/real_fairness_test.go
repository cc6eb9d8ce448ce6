package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestB03NoisyNeighbour measures the p99 of a caller who sends just what it may, alone and beside one who sends ten times
// that. On demand, since it measures time: HEADGATE_FAIRNESS is how many seconds each of the two runs takes.
func TestB03NoisyNeighbour(t *testing.T) {
	seconds, err := strconv.Atoi(os.Getenv("HEADGATE_FAIRNESS"))
	if err != nil {
		t.Skip("measures time: run make test-fairness")
	}
	p := startGateway(t, t.TempDir(), "--config", temporary(t, "headgate.yaml", `
auth:
  tokens:
    - {id: x, secret: "file:`+temporary(t, "x", "0123456789abcdef-x")+`", streams: ["*"], actions: [send]}
    - {id: y, secret: "file:`+temporary(t, "y", "0123456789abcdef-y")+`", streams: ["*"], actions: [send]}
rates: {caller: {events: 10000, burst: 1s}}
`))
	quiet := &pacer{base: p.http, token: "0123456789abcdef-y", events: 100}
	noisy := &pacer{base: p.http, token: "0123456789abcdef-x", events: 1000}
	quiet.run(time.Second) // connections, streams and caches are there
	quiet.reset()

	quiet.run(time.Duration(seconds) * time.Second)
	alone := quiet.reset()
	var both sync.WaitGroup
	both.Go(func() { noisy.run(time.Duration(seconds) * time.Second) })
	quiet.run(time.Duration(seconds) * time.Second)
	both.Wait()
	beside, x := quiet.reset(), noisy.reset()

	t.Logf("Y alone:    %v", alone)
	t.Logf("Y beside X: %v", beside)
	t.Logf("X:          %v", x)
	t.Logf("p99 of Y changes by a factor of %.2f", float64(beside.p99)/float64(alone.p99))
	if alone.statuses[429]+beside.statuses[429] > 0 || x.statuses[429] == 0 {
		t.Error("429 is for X, and for X alone")
	}
	if beside.p99 > 2*alone.p99 {
		t.Error("p99 of Y is over twice what it is alone")
	}
}

// pacer posts a hundred requests a second, each at its time, whether or not the one before was answered.
type pacer struct {
	base   string // URL of the server
	token  string
	events int

	mu       sync.Mutex
	took     []time.Duration
	statuses map[int]int
}

func (c *pacer) run(d time.Duration) {
	body := []byte(strings.Repeat(`{"remote_ip":"10.87.193.13","request":"GET /api/v1/sessions HTTP/1.1","response":204}`+"\n", c.events))
	var requests sync.WaitGroup
	defer requests.Wait()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(d); time.Now().Before(end); {
		due := <-tick.C
		requests.Go(func() { c.post(body, due) })
	}
}

func (c *pacer) post(body []byte, due time.Time) {
	req, err := http.NewRequest("POST", c.base+"/v1/streams/web/events", bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	req.Header.Set("Authorization", "Bearer "+c.token)
	status := 0
	if resp, err := http.DefaultClient.Do(req); err == nil {
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		status = resp.StatusCode
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.statuses == nil {
		c.statuses = map[int]int{}
	}
	c.statuses[status]++
	if status == 200 {
		c.took = append(c.took, time.Since(due))
	}
}

// pace is what a run brought; the times are of the requests that were answered 200.
type pace struct {
	p50, p99 time.Duration
	statuses map[int]int
	took     []time.Duration // in order
}

// paceOf makes one of what was measured.
func paceOf(took []time.Duration, statuses map[int]int) pace {
	r := pace{took: took, statuses: statuses}
	if slices.Sort(took); len(took) > 0 {
		r.p50, r.p99 = took[len(took)/2], took[len(took)*99/100]
	}
	return r
}

// and is both runs as one.
func (r pace) and(o pace) pace {
	statuses := map[int]int{}
	for _, some := range []map[int]int{r.statuses, o.statuses} {
		for status, n := range some {
			statuses[status] += n
		}
	}
	return paceOf(slices.Concat(r.took, o.took), statuses)
}

// over is the p99 as a factor of that of another run.
func (r pace) over(o pace) float64 { return float64(r.p99) / float64(o.p99) }

func (r pace) String() string {
	return fmt.Sprintf("p50 %v, p99 %v, answers by status %v", r.p50.Round(time.Microsecond), r.p99.Round(time.Microsecond), r.statuses)
}

// beside runs pacers at the same time.
func beside(d time.Duration, all ...*pacer) {
	var running sync.WaitGroup
	for _, c := range all {
		running.Go(func() { c.run(d) })
	}
	running.Wait()
}

func (c *pacer) reset() (r pace) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r = paceOf(c.took, c.statuses)
	c.took, c.statuses = nil, nil
	return r
}
