package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// retrier sends events with ids, a request at a time, and sends one again that was not answered, until it is.
type retrier struct {
	id, next, n int // the request under way has n events from next on; n 0: there is none
	answered    int // requests
	again       int // that were sent a second time
}

func (r *retrier) body() string {
	var body strings.Builder
	for i := r.next; i < r.next+r.n; i++ {
		fmt.Fprintf(&body, "{\"id\":\"%d-%d\"}\n", r.id, i)
	}
	return body.String()
}

// run sends until the gateway is gone, or as many requests were answered as there are to be.
func (r *retrier) run(client *http.Client, url string, requests int, answered func()) {
	for r.answered < requests {
		if r.n > 0 {
			r.again++
		} else {
			r.n = 1 + r.answered%3
		}
		resp, err := client.Post(url+"/v1/streams/s/events?ack=durable", "application/x-ndjson", strings.NewReader(r.body()))
		if err != nil {
			return
		}
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err != nil {
			return
		}
		if resp.StatusCode == http.StatusOK {
			r.next, r.n = r.next+r.n, 0
			r.answered++
			answered()
		}
	}
}

// F46, F58: the gateway is killed under load, some times. What was not answered is sent again with the same ids, and each event
// is stored once: whether the spool alone had it, or the backend too.
func TestF46UnansweredIsStoredOnceOverKills(t *testing.T) {
	for _, where := range []string{"embedded", "dead node"} {
		t.Run(where, func(t *testing.T) {
			settings := []string{"--set", `streams={s: {id: {json: /id}, partitions: 4, linger: {waiting: 1ms}}}`}
			n := newNode(t)
			if where == "dead node" {
				n.down.Store(10)
				settings = append(n.settings(), "--set", `streams={s: {backend: lake, id: {json: /id}, partitions: 4, linger: {waiting: 1ms}}}`)
			}
			const kills, requests = 3, 60 // of each producer
			producers := make([]*retrier, 8)
			for i := range producers {
				producers[i] = &retrier{id: i}
			}
			data := t.TempDir()
			for life := range kills + 1 {
				p := startGateway(t, data, settings...)
				transport := &http.Transport{}
				var answered atomic.Int64
				var all sync.WaitGroup
				for _, r := range producers {
					all.Go(func() {
						r.run(&http.Client{Transport: transport}, p.http, requests, func() {
							if answered.Add(1) == 50 && life < kills {
								p.cmd.Process.Kill()
							}
						})
					})
				}
				all.Wait()
				transport.CloseIdleConnections()
				if life < kills {
					p.kill()
					continue
				}
				n.down.Store(0)
				checkOnce(t, p, n, producers, where == "dead node")
				if code := p.terminate(); code != 0 {
					t.Errorf("exit %d; log:\n%s", code, p.log)
				}
			}
		})
	}
}

// checkOnce counts what is stored of each event.
func checkOnce(t *testing.T, p *process, n *node, producers []*retrier, onNode bool) {
	t.Helper()
	want, again := 0, 0
	for _, r := range producers {
		want += r.next
		again += r.again
	}
	var rows []row
	if onNode {
		p.until("delivered", func() bool { rows, _ = n.rows(t); return len(rows) >= want })
	} else {
		rows = p.tail("s")
	}
	times := map[string]int{}
	for _, r := range rows {
		times[r.Data]++
	}
	twice := 0
	for _, m := range times {
		twice += m - 1
	}
	if twice > 0 || len(times) != want {
		t.Errorf("%d events are stored, %d of them twice; want %d, each once", len(times), twice, want)
	}
	if again == 0 {
		t.Error("nothing was sent again: the test shows nothing")
	}
	t.Logf("%d events, %d requests sent again, %d stored twice", len(times), again, twice)
}
