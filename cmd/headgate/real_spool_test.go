package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/forward/forwardtest"
	"github.com/headgate-io/headgate/sdk/consume"
)

// node is a stream's HTTP node, and how a gateway is told of it.
type node struct {
	*forwardtest.Receiver
	down atomic.Int32 // of ten POSTs it refuses so many
}

func newNode(t *testing.T) *node {
	n := &node{Receiver: forwardtest.NewReceiver(t)}
	n.Judge(func(*forward.Run) forwardtest.Answer {
		if rand.Int32N(10) < n.down.Load() {
			return forwardtest.Answer{Status: http.StatusServiceUnavailable}
		}
		return forwardtest.Answer{}
	})
	return n
}

func (n *node) settings(more ...string) []string {
	return append([]string{"--set", fmt.Sprintf("backends={lake: {webhook: {nodes: [%q]}}}", n.URL),
		"--set", `streams={s: {backend: lake, key: {json: /k}, partitions: 4}, other: {}}`}, more...)
}

// rows returns the events that the node took, by partition those that it had not seen before: a frame that comes again
// after a crash is known by the numbers of its events, and must be the same then. It counts those.
func (n *node) rows(t *testing.T) (rows []row, again int) {
	t.Helper()
	var seen [4]map[uint64]string
	var last [4]uint64
	for _, r := range n.Runs() {
		err := consume.Decode(r.Payload, r.ContentEncoding, r.ContentType, func(e consume.Event) error {
			p := int(e.Partition)
			if seen[p] == nil {
				seen[p] = map[uint64]string{}
			}
			if before, ok := seen[p][e.Number]; ok {
				if again++; before != string(e.Data) {
					t.Errorf("partition %d, number %d: %s and then %s", p, e.Number, before, e.Data)
				}
				return nil
			}
			if e.Number < last[p] {
				t.Errorf("partition %d: number %d after %d", p, e.Number, last[p])
			}
			last[p], seen[p][e.Number] = e.Number, string(e.Data)
			rows = append(rows, row{Partition: p, Number: e.Number, Data: string(e.Data)})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return rows, again
}

// has tells whether everything acknowledged has arrived.
func (n *node) has(t *testing.T, producers []*producer) bool {
	rows, _ := n.rows(t)
	there := map[string]bool{}
	for _, r := range rows {
		there[r.Data] = true
	}
	for _, pr := range producers {
		for i := range pr.acked {
			if !there[fmt.Sprintf(`{"k":%q,"n":%d}`, pr.key, i)] {
				return false
			}
		}
	}
	return true
}

// F1, M01, F15, F17: the gateway is killed again and again under load while its node takes nothing, then some, then
// everything. What was acknowledged as durable arrives, in order; what comes again is what came before, under its numbers.
func TestF1KillNineWithADeadNode(t *testing.T) {
	data, n := t.TempDir(), newNode(t)
	producers := make([]*producer, 4)
	for i := range producers {
		producers[i] = &producer{key: fmt.Sprintf("producer-%d", i), acked: map[int]bool{}}
	}
	for _, down := range []int32{10, 10, 5, 0, 5} {
		n.down.Store(down)
		p := startGateway(t, data, n.settings()...)
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: len(producers)}, Timeout: 30 * time.Second}
		var all sync.WaitGroup
		for _, pr := range producers {
			all.Go(func() { pr.run(client, p.http+"/v1/streams/s/events?ack=durable") })
		}
		<-time.After(time.Duration(100+rand.IntN(400)) * time.Millisecond)
		if down == 10 { // a dead node keeps durable from nothing
			p.answers(producers)
		}
		p.kill()
		all.Wait()
		client.CloseIdleConnections()
	}
	n.down.Store(0)
	p := startGateway(t, data, n.settings()...)
	p.until("everything acknowledged arrives", func() bool { return n.has(t, producers) })
	if code := p.terminate(); code != 0 {
		t.Errorf("exit %d\n%s", code, p.log)
	}
	rows, again := n.rows(t)
	checkNothingLost(t, rows, producers)
	t.Logf("%d events came again", again)
}

// B04, B06, H09, P02: a full spool refuses before the body, other streams go on, a stop needs no backend, and when the
// backend is back it all resumes by itself with nothing lost.
func TestB06TheSpoolFillsAndDrains(t *testing.T) {
	data, n := t.TempDir(), newNode(t)
	n.down.Store(10)
	settings := n.settings("--set", "spool.max_bytes=2MiB", "--set", "drain.timeout=20s")
	p := startGateway(t, data, settings...)
	pr := &producer{key: "producer", acked: map[int]bool{}}
	filler := make([]byte, 30_000)
	status, answer := 0, ""
	for range 200 {
		for i := range filler {
			filler[i] = "0123456789abcdef"[rand.IntN(16)]
		}
		body := fmt.Sprintf(`{"k":%q,"n":%d}`+"\n"+`{"k":"filler","x":%q}`, pr.key, pr.next, filler)
		if status, answer = p.post("s", body); status != 200 {
			break
		}
		pr.acked[pr.next] = true
		pr.next++
	}
	if status != 503 || !strings.Contains(answer, `"code":"spool_full"`) || !strings.Contains(answer, `"retryable":true`) || pr.next < 20 {
		t.Fatalf("after %d requests: %d %s", pr.next, status, answer)
	}
	wantNoContinue(t, p)
	if status, answer := p.post("other", `{}`); status != 200 {
		t.Errorf("a stream with a backend that works: %d %s", status, answer)
	}
	if out, _ := p.headgate(0, "spool", "verify", data); !strings.Contains(out, "ok: ") {
		t.Error(out)
	}
	if code := p.terminate(); code != 0 {
		t.Errorf("everything is in the spool, and the stop says %d\n%s", code, p.log)
	}
	p = startGateway(t, data, settings...)
	n.down.Store(0)
	p.until("it takes events again", func() bool {
		status, _ := p.post("s", fmt.Sprintf(`{"k":"producer","n":%d}`, pr.next))
		return status == 200
	})
	pr.acked[pr.next] = true
	p.until("everything arrives", func() bool { return n.has(t, []*producer{pr}) })
	var own []row
	rows, _ := n.rows(t)
	for _, r := range rows {
		if strings.Contains(r.Data, pr.key) {
			own = append(own, r)
		}
	}
	checkNothingLost(t, own, []*producer{pr})
}

// wantNoContinue announces a body and wants the refusal without having sent it.
func wantNoContinue(t *testing.T, p *process) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.http, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/streams/s/events HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\nExpect: 100-continue\r\n\r\n")
	got := make([]byte, 4096)
	k, err := conn.Read(got)
	if text := string(got[:k]); err != nil || !strings.HasPrefix(text, "HTTP/1.1 503 ") || !strings.Contains(text, "Retry-After") {
		t.Errorf("%q, %v", text, err)
	}
}

// A02: delivered, with a backend that is down and a spool that has the events, says so and that nothing is to be repeated.
func TestA02DeliveredWithADeadNode(t *testing.T) {
	n := newNode(t)
	n.down.Store(10)
	p := startGateway(t, t.TempDir(), n.settings("--set", "http.request_timeout=300ms")...)
	sent := 0
	p.until("an event is safe before its request is over", func() bool { // on a slow disk the first are not
		sent++
		resp, err := http.Post(p.http+"/v1/streams/s/events?ack=delivered", "application/json", strings.NewReader(`{"k":"a","n":1}`))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		answer, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != 503 || !bytes.Contains(answer, []byte(`"code":"ack_timeout"`)) {
			t.Fatalf("%d %s", resp.StatusCode, answer)
		}
		if !bytes.Contains(answer, []byte(`"stored":"durable"`)) {
			return false
		}
		if !bytes.Contains(answer, []byte(`"retryable":false`)) || resp.Header.Get("Retry-After") != "" {
			t.Errorf("it is not to be sent again: %s, Retry-After %q", answer, resp.Header.Get("Retry-After"))
		}
		return true
	})
	n.down.Store(0)
	p.until("all events arrive", func() bool { rows, _ := n.rows(t); return len(rows) >= sent })
	p.drained()
	if rows, _ := n.rows(t); len(rows) != sent {
		t.Errorf("%d events: %+v", sent, rows)
	}
}

// M05, M09: a changed byte is found, named, set aside, and costs its frame only.
func TestM05SpoolVerifyDumpRepair(t *testing.T) {
	data, n := t.TempDir(), newNode(t)
	n.down.Store(10)
	p := startGateway(t, data, n.settings()...)
	for i := range 5 {
		if status, answer := p.post("s", fmt.Sprintf(`{"k":"a","n":%d}`, i)); status != 200 {
			t.Fatalf("%d %s", status, answer)
		}
	}
	p.kill()
	out, _ := p.headgate(0, "spool", "dump", data, "-o", "json")
	var frames []spoolLine
	for line := range strings.Lines(out) {
		var f spoolLine
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		frames = append(frames, f)
	}
	if len(frames) != 5 || frames[2].Stream != "s" || frames[2].Events != 1 {
		t.Fatalf("%s", out)
	}
	bad := frames[2]
	path := filepath.Join(data, "spool", "s", bad.Segment)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content[bad.Offset+80] ^= 0x10
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _ := p.headgate(1, "spool", "verify", data); !strings.Contains(out, fmt.Sprintf("s/%s: offset %d,", bad.Segment, bad.Offset)) {
		t.Errorf("verify: %s", out)
	}
	if out, _ := p.headgate(0, "spool", "repair", data); !strings.Contains(out, "1 damaged ranges set aside") {
		t.Errorf("repair: %s", out)
	}
	p.headgate(0, "spool", "verify", data)
	n.down.Store(0)
	p = startGateway(t, data, n.settings()...)
	p.until("the others arrive", func() bool { return len(n.Runs()) > 0 })
	if code := p.terminate(); code != 0 {
		t.Errorf("exit %d", code)
	}
	rows, _ := n.rows(t)
	if len(rows) != 4 || rows[1].Number+2 != rows[2].Number {
		t.Errorf("%+v", rows)
	}
	p.headgate(1, "spool", "verify", t.TempDir())
}
