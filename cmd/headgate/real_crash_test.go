package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// producer posts numbered events under its own key, one request at a time, and keeps what was acknowledged.
type producer struct {
	key      string
	next     int
	acked    map[int]bool
	answered atomic.Int64 // requests with 200, to be read while it runs
}

// answers waits until another request of one of the producers was answered with 200.
func (p *process) answers(producers []*producer) {
	p.t.Helper()
	sum := func() (n int64) {
		for _, pr := range producers {
			n += pr.answered.Load()
		}
		return n
	}
	before := sum()
	p.until("requests are answered", func() bool { return sum() > before })
}

const eventsPerRequest = 20

// run posts until the gateway is gone; a request without an answer is not repeated: its outcome is unknown.
func (pr *producer) run(client *http.Client, url string) {
	for {
		var body bytes.Buffer
		first := pr.next
		for range eventsPerRequest {
			fmt.Fprintf(&body, `{"k":%q,"n":%d}`+"\n", pr.key, pr.next)
			pr.next++
		}
		req, err := http.NewRequest("POST", url, &body)
		if err != nil {
			panic(err)
		}
		req.Header.Set("Content-Type", "application/x-ndjson")
		resp, err := client.Do(req)
		if err != nil {
			return
		}
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err != nil {
			return
		}
		if resp.StatusCode == 200 {
			for n := first; n < pr.next; n++ {
				pr.acked[n] = true
			}
			pr.answered.Add(1)
		}
	}
}

// TestM01KillNine kills the gateway under load again and again. Every event answered with 200 must be there, once, and
// each producer's events in the order they were sent.
func TestM01KillNine(t *testing.T) {
	rounds := 5
	if n, err := strconv.Atoi(os.Getenv("HEADGATE_CRASHES")); err == nil {
		rounds = n
	}
	data := t.TempDir()
	producers := make([]*producer, 8)
	for i := range producers {
		producers[i] = &producer{key: fmt.Sprintf("producer-%d", i), acked: map[int]bool{}}
	}
	settings := []string{"--set", `streams={s: {key: {json: /k}, partitions: 4}}`}
	for round := range rounds {
		p := startGateway(t, data, settings...)
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: len(producers)}, Timeout: 30 * time.Second}
		var wg sync.WaitGroup
		for _, pr := range producers {
			wg.Go(func() { pr.run(client, p.http+"/v1/streams/s/events?ack=durable") })
		}
		<-time.After(time.Duration(50+rand.IntN(500)) * time.Millisecond)
		if round == rounds-1 {
			p.answers(producers)
		}
		p.kill()
		if strings.Contains(p.log.String(), "LOST") { // a record that was cut off is no damage
			t.Errorf("round %d:\n%s", round, p.log)
		}
		wg.Wait()
		client.CloseIdleConnections()
		t.Logf("round %d: %d requests so far", round, requests(producers))
	}
	p := startGateway(t, data, settings...)
	checkNothingLost(t, p.tail("s"), producers)
	if code := p.terminate(); code != 0 {
		t.Errorf("exit %d\n%s", code, p.log)
	}
}

func requests(producers []*producer) (n int) {
	for _, pr := range producers {
		n += pr.next / eventsPerRequest
	}
	return n
}

func checkNothingLost(t *testing.T, rows []row, producers []*producer) {
	t.Helper()
	last := map[string]int{}
	seen := map[string]map[int]bool{}
	for _, pr := range producers {
		last[pr.key], seen[pr.key] = -1, map[int]bool{}
	}
	for _, r := range rows {
		var e struct {
			K string
			N int
		}
		if err := json.Unmarshal([]byte(r.Data), &e); err != nil {
			t.Fatalf("corrupt event %q: %v", r.Data, err)
		}
		if e.N <= last[e.K] {
			t.Fatalf("%s: event %d after %d: doubled or out of order", e.K, e.N, last[e.K])
		}
		last[e.K] = e.N
		seen[e.K][e.N] = true
	}
	acked := 0
	for _, pr := range producers {
		for n := range pr.acked {
			acked++
			if !seen[pr.key][n] {
				t.Errorf("%s: event %d was answered with 200 and is lost", pr.key, n)
			}
		}
	}
	t.Logf("acknowledged %d, held %d", acked, len(rows))
	if acked == 0 {
		t.Error("nothing was acknowledged: the test tested nothing")
	}
}

// TestP02TerminateUnderLoad: SIGTERM drains; what was answered with 200 or 202 before is there after a restart.
func TestP02TerminateUnderLoad(t *testing.T) {
	data := t.TempDir()
	settings := []string{"--set", `streams={s: {key: {json: /k}, partitions: 4}}`}
	p := startGateway(t, data, settings...)
	pr := &producer{key: "producer", acked: map[int]bool{}}
	fast := &producer{key: "accepted", acked: map[int]bool{}}
	var wg sync.WaitGroup
	client := &http.Client{Timeout: 30 * time.Second}
	wg.Go(func() { pr.run(client, p.http+"/v1/streams/s/events") })
	<-time.After(200 * time.Millisecond)
	for range 50 { // accepted: promised nothing at a kill -9, but an orderly stop delivers it
		body := fmt.Sprintf(`{"k":"accepted","n":%d}`, fast.next)
		if status, answer := p.post("s", body, "ack=accepted"); status != 202 {
			t.Fatalf("%d %s", status, answer)
		}
		fast.acked[fast.next] = true
		fast.next++
	}
	if code := p.terminate(); code != 0 {
		t.Errorf("exit %d\n%s", code, p.log)
	}
	wg.Wait()
	p = startGateway(t, data, settings...)
	checkNothingLost(t, p.tail("s"), []*producer{pr, fast})
}
