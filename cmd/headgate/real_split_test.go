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
	"testing"
	"time"
)

// source posts numbered events of a key that all sources have in common, and of keys of its own.
type source struct {
	name  string
	hot   string // the key that they have in common, another one in each round
	next  int
	acked map[int]bool
}

// run posts until the gateway is gone; a request without an answer is not repeated: its outcome is unknown.
func (s *source) run(client *http.Client, url string) {
	pad := strings.Repeat("x", 400)
	for {
		var body bytes.Buffer
		first := s.next
		for i := range 20 {
			key := fmt.Sprint(s.name, s.next%50)
			if i < 12 {
				key = s.hot
			}
			fmt.Fprintf(&body, `{"k":%q,"s":%q,"n":%d,"pad":%q}`+"\n", key, s.name, s.next, pad)
			s.next++
		}
		req, err := http.NewRequest("POST", url, &body)
		if err != nil {
			panic(err)
		}
		req.Header.Set("Content-Type", "application/x-ndjson")
		req.Header.Set("Headgate-Source", s.name)
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
			for n := first; n < s.next; n++ {
				s.acked[n] = true
			}
		}
		<-time.After(10 * time.Millisecond)
	}
}

// The gateway is killed while keys are split, grown and merged, wherever it is in that. Every event answered with 200 is
// there, once, and those of each key and source are in the order in which they were sent, also over the restarts.
func TestKillNineWhileKeysAreSplit(t *testing.T) {
	rounds, err := strconv.Atoi(os.Getenv("HEADGATE_CRASHES"))
	if err != nil {
		t.Skip("make test-crash runs it")
	}
	data := t.TempDir()
	sources := make([]*source, 12)
	for i := range sources {
		sources[i] = &source{name: fmt.Sprintf("source-%d-", i), acked: map[int]bool{}}
	}
	settings := []string{"--set", `streams={s: {key: {json: /k}, partitions: 8, adaptive: {hold: 100ms}}}`}
	begun, ended := 0, 0
	for round := range rounds {
		p := startGateway(t, data, settings...)
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: len(sources)}, Timeout: 30 * time.Second}
		var all sync.WaitGroup
		for _, s := range sources {
			s.hot = fmt.Sprint("hot-", round)
			all.Go(func() { s.run(client, p.http+"/v1/streams/s/events?ack=durable") })
		}
		<-time.After(time.Duration(300+rand.IntN(900)) * time.Millisecond)
		p.kill()
		all.Wait()
		client.CloseIdleConnections()
		begun += strings.Count(p.log.String(), "split key")
		ended += strings.Count(p.log.String(), "merge key")
	}
	p := startGateway(t, data, settings...)
	checkOrderBySource(t, p.tail("s"), sources)
	var table struct {
		Version  int
		UnderWay []any `json:"under_way"`
		Moving   []int
	}
	if err := json.Unmarshal([]byte(p.get("/v1/streams/s/table")), &table); err != nil || len(table.UnderWay)+len(table.Moving) > 0 {
		t.Errorf("%+v, %v", table, err)
	}
	if begun == 0 {
		t.Error("no key was split: the test tested nothing")
	}
	t.Logf("%d splits, %d merges, table %d", begun, ended, table.Version)
	if code := p.terminate(); code != 0 {
		t.Errorf("exit %d\n%s", code, p.log)
	}
}

func checkOrderBySource(t *testing.T, rows []row, sources []*source) {
	t.Helper()
	last, seen := map[string]int{}, map[string]map[int]bool{}
	for _, r := range rows {
		var e struct {
			K, S string
			N    int
		}
		if err := json.Unmarshal([]byte(r.Data), &e); err != nil {
			t.Fatalf("corrupt event %q: %v", r.Data, err)
		}
		of := e.K + " of " + e.S
		if n, ok := last[of]; ok && e.N <= n {
			t.Errorf("%s: event %d behind %d", of, e.N, n)
		}
		last[of] = e.N
		if seen[e.S] == nil {
			seen[e.S] = map[int]bool{}
		}
		if seen[e.S][e.N] {
			t.Errorf("event %d of %s is there twice", e.N, e.S)
		}
		seen[e.S][e.N] = true
	}
	acked := 0
	for _, s := range sources {
		for n := range s.acked {
			if acked++; !seen[s.name][n] {
				t.Errorf("event %d of %s was acknowledged and is lost", n, s.name)
			}
		}
	}
	if acked == 0 {
		t.Error("nothing was acknowledged: the test tested nothing")
	}
	t.Logf("acknowledged %d, held %d", acked, len(rows))
}

// What is counted is the key that a plugin finds, whatever the bodies are.
func TestK05HotKeyThatAPluginFinds(t *testing.T) {
	b, err := product()
	if err != nil {
		t.Fatal(err)
	}
	p := startGateway(t, t.TempDir())
	p.headgate(0, "plugin", "push", "accesslog", b.accesslog)
	p.headgate(0, "plugin", "activate", "--stream", "web", "accesslog", "--config", `{"drop_status_from":500}`)
	n := 0
	p.until("split", func() bool {
		var body strings.Builder
		for range 500 {
			ip := fmt.Sprintf("10.0.%d.%d", n>>8&255, n&255)
			if n%2 == 0 {
				ip = "192.0.2.7"
			}
			fmt.Fprintf(&body, `{"remote_ip":%q,"response":200,"n":%d,"agent":"%x"}`+"\n", ip, n, rand.Uint64())
			n++
		}
		if status, answer := p.post("web", body.String()); status != 200 {
			t.Fatalf("%d %s", status, answer)
		}
		return strings.Contains(p.get("/v1/streams/web/table"), `"splits":[{"key":"192.0.2.7"`)
	})
	if keys := p.get("/v1/streams/web/hotkeys"); !strings.Contains(keys, `"keys":[{"key":"192.0.2.7"`) || !strings.Contains(keys, `"state":"split"`) {
		t.Errorf("hot keys %s", keys)
	}
	if code := p.terminate(); code != 0 {
		t.Errorf("exit %d", code)
	}
}
