package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// told is what an answer says of a repetition.
type told struct {
	Accepted, Duplicates int
	BatchID              string `json:"batch_id"`
	replayed             bool
	doc                  string
}

// once posts NDJSON to a stream with an idempotency key, if it has one.
func (p *process) once(stream, body, key string) (status int, a told, err error) {
	req, err := http.NewRequest("POST", p.http+"/v1/streams/"+stream+"/events", strings.NewReader(body))
	if err != nil {
		return 0, a, err
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, a, err
	}
	defer resp.Body.Close()
	doc, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, a, err
	}
	a.doc, a.replayed = string(doc), resp.Header.Get("Idempotency-Replayed") == "true"
	return resp.StatusCode, a, json.Unmarshal(doc, &a)
}

const repeatStreams = `streams={s: {id: {json: /id}, partitions: 4}, plain: {}}`

// A07, E01, F46: what was answered before a kill -9, and before an orderly stop, is known behind it: ids make duplicates, a
// key gets its first answer, byte for byte.
func TestA07RepetitionsAreKnownBehindAKill(t *testing.T) {
	data := t.TempDir()
	p := startGateway(t, data, "--set", repeatStreams)
	body := "{\"id\":\"a\"}\n{\"id\":\"b\"}\n{\"id\":\"c\"}\n"
	if status, a, err := p.once("s", body, ""); status != 200 || a.Accepted != 3 || err != nil {
		t.Fatal(status, a, err)
	}
	status, first, err := p.once("plain", "{\"n\":1}\n{bad\n", "k1")
	if status != 207 || first.Accepted != 1 || first.replayed || err != nil {
		t.Fatal(status, first, err)
	}
	for _, stop := range []func(){func() { p.kill() }, func() { p.terminate() }, func() { p.kill() }} {
		stop()
		p = startGateway(t, data, "--set", repeatStreams)
		if status, a, err := p.once("s", body, ""); status != 200 || a.Accepted != 0 || a.Duplicates != 3 || err != nil {
			t.Errorf("ids sent again: %d %+v %v", status, a, err)
		}
		if status, a, err := p.once("s", `{"id":"new"}`, ""); status != 200 || a.Accepted+a.Duplicates != 1 || err != nil {
			t.Errorf("a new id: %d %+v %v", status, a, err)
		}
		if status, a, err := p.once("plain", "{\"n\":1}\n{bad\n", "k1"); status != 207 || !a.replayed || a.doc != first.doc || err != nil {
			t.Errorf("a key sent again: %d %+v %v, want %s", status, a, err, first.doc)
		}
		if status, _, err := p.once("plain", "{\"n\":2}\n", "k1"); status != 422 || err != nil {
			t.Errorf("a key with other content: %d %v", status, err)
		}
	}
	if rows := p.tail("s"); len(rows) != 4 {
		t.Errorf("%d events with ids are stored, want 4: %v", len(rows), rows)
	}
	if rows := p.tail("plain"); len(rows) != 1 {
		t.Errorf("%d events of one request are stored", len(rows))
	}
}

// repeater sends batches of events with ids, and notes which were answered.
type repeater struct {
	name  string
	next  int
	acked []int
	done  atomic.Bool // something was answered
}

const repeatBatch = 7

func (r *repeater) batch(n int) string {
	var b strings.Builder
	for i := range repeatBatch {
		fmt.Fprintf(&b, "{\"id\":\"%s-%d-%d\"}\n", r.name, n, i)
	}
	return b.String()
}

func (r *repeater) run(t *testing.T, p *process) {
	for {
		status, a, err := p.once("s", r.batch(r.next), "")
		if err != nil {
			return // it was killed
		}
		if status != 200 || a.Accepted != repeatBatch {
			t.Errorf("batch %d: %d %s", r.next, status, a.doc)
			return
		}
		r.acked = append(r.acked, r.next)
		r.done.Store(true)
		r.next++
	}
}

// F46: everything is sent twice, with a kill -9 under load in the middle, again and again: each event that was answered is
// stored once, and said to be a duplicate each other time.
func TestF46EverythingTwiceWithKills(t *testing.T) {
	data := t.TempDir()
	all := []*repeater{{name: "x"}, {name: "y"}, {name: "z"}}
	for range 3 {
		p := startGateway(t, data, "--set", repeatStreams)
		for _, r := range all {
			for _, n := range r.acked {
				if status, a, err := p.once("s", r.batch(n), ""); status != 200 || a.Duplicates != repeatBatch || err != nil {
					t.Fatalf("%s, batch %d: %d %s %v", r.name, n, status, a.doc, err)
				}
			}
			r.next++ // what got no answer is sent by nobody again: whether it is stored is unknown
		}
		var running sync.WaitGroup
		for _, r := range all {
			running.Go(func() { r.run(t, p) })
		}
		<-time.After(time.Duration(50+rand.IntN(200)) * time.Millisecond)
		p.until("something was answered", all[0].done.Load)
		p.kill()
		running.Wait()
	}
	p := startGateway(t, data, "--set", repeatStreams)
	times := map[string]int{}
	for _, row := range p.tail("s") {
		times[row.Data]++
	}
	sent := 0
	for _, r := range all {
		for _, n := range r.acked {
			for line := range strings.Lines(r.batch(n)) {
				if sent++; times[strings.TrimSpace(line)] != 1 {
					t.Errorf("%s is stored %d times", line, times[strings.TrimSpace(line)])
				}
			}
		}
	}
	if sent == 0 {
		t.Error("nothing was answered")
	}
	t.Logf("%d events", sent)
}
