package faults

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/forward/forwardtest"
)

// repetition is a request that a kill left without an answer, sent again to the next process: how often its events are stored
// then, which is what docs/send-events.md promises.
type repetition struct {
	what     string
	points   string // where the first process dies
	settings string // of the stream
	key      string // Idempotency-Key
	node     bool   // the backend is an HTTP node, else the embedded one
	down     bool   // the node takes nothing as long as the first process lives
	held     bool   // the node answers when the spool has it
	times    int    // that each event is stored
	quick    bool
}

const byID = `key: {json: /k}, id: {json: /id}`

func repetitions() []repetition {
	return []repetition{
		{what: "nothing of it was stored", points: "enqueued=kill", settings: byID, node: true, down: true, times: 1},
		{what: "the spool has it, the node has not", points: "spool.synced=kill", settings: byID, node: true, down: true, times: 1, quick: true},
		{what: "the spool has it, the node too", points: "confirmed=kill,answer=delay:10m@1+", settings: byID, node: true, held: true, times: 1},
		{what: "the node has it, the spool has not", points: "spool.write=delay:10s@1+,published=kill", settings: byID, node: true, times: 2},
		{what: "the answer was made", points: "answer=kill", settings: byID, node: true, times: 1},
		{what: "the spool has it as gzip", points: "spool.synced=kill", settings: byID + `, codec: gzip`, node: true, down: true, times: 2},
		{what: "JetStream has it, the spool has not", points: "spool.write=delay:10s@1+,published=kill", settings: byID, times: 1},
		{what: "a key and ids: the spool has it", points: "spool.synced=kill", settings: byID, key: "k1", node: true, down: true, times: 1},
		{what: "a key and no ids: the spool has it", points: "spool.synced=kill", settings: `key: {json: /k}`, key: "k1", node: true, down: true, times: 2},
		{what: "a key and no ids: nothing was stored", points: "enqueued=kill", settings: `key: {json: /k}`, key: "k1", node: true, down: true, times: 1},
		{what: "a key and no ids: the answer was made", points: "answer=kill", settings: `key: {json: /k}`, key: "k1", node: true, times: 1, quick: true},
	}
}

// F46, F1: who sends again what a kill left without an answer has it stored as often as the documentation says: twice only where
// a node had taken it before the spool had, where the codec hides the ids from a start, and by a key alone.
func TestF46RepeatedAfterAKill(t *testing.T) {
	sum := result{Fault: "F46", What: "a request is repeated after kill -9", OK: true}
	for _, r := range repetitions() {
		if !r.quick && scale(0, 1, 1) == 0 {
			continue
		}
		t.Run(r.what, func(t *testing.T) {
			stored := r.run(t)
			sum.Cycles++
			if stored != r.times {
				t.Errorf("each event is stored %d times, %d is what the documentation says", stored, r.times)
			}
		})
	}
	sum.Note = "stored as often as docs/send-events.md says"
	say(t, sum)
}

func (r *repetition) run(t *testing.T) (times int) {
	b := newBed(t, result{})
	stream := fmt.Sprintf("streams={s: {%s, partitions: 1}}", r.settings)
	if r.node {
		b.onNode()
		stream = fmt.Sprintf("streams={s: {backend: lake, %s, partitions: 1}}", r.settings)
	}
	b.with(stream)
	body := `{"id":"a","k":"x"}` + "\n" + `{"id":"b","k":"x"}` + "\n"
	if r.down {
		b.node.down.Store(10)
	}
	hold := make(chan struct{})
	if r.held {
		b.node.Judge(func(*forward.Run) forwardtest.Answer { return forwardtest.Answer{After: hold} })
	}
	g := start(t, b.data, r.points, b.settings...)
	answered := make(chan bool, 1)
	go func() {
		_, err := g.keyed(body, r.key)
		answered <- err == nil
	}()
	if r.held {
		g.until("the spool has it", func() bool { return g.metric("headgate_spool_frames") > 0 })
		close(hold)
	}
	if <-answered {
		t.Fatalf("it was answered before %s", r.points)
	}
	<-g.exited
	if r.node {
		b.node.down.Store(0)
	}
	g = start(t, b.data, "", b.settings...)
	if status, err := g.keyed(body, r.key); err != nil || status != 200 {
		t.Fatalf("sent again: %d %v", status, err)
	}
	counts := map[string]int{}
	if strings.Contains(r.settings, "gzip") {
		g.idle()
		b.node.zipped(t, counts)
	} else {
		for _, row := range b.rows(g) {
			counts[row.Data]++
		}
	}
	if len(counts) != 2 || counts[`{"id":"a","k":"x"}`] != counts[`{"id":"b","k":"x"}`] {
		t.Fatalf("stored: %v", counts)
	}
	return counts[`{"id":"a","k":"x"}`]
}

// keyed posts to the main stream at durable.
func (g *gateway) keyed(body, key string) (status int, err error) {
	req, err := http.NewRequest("POST", g.http+"/v1/streams/"+mainStream+"/events?ack=durable", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// zipped counts the events of frames that have nothing but their lines; a run that comes again counts once.
func (n *node) zipped(t *testing.T, counts map[string]int) {
	t.Helper()
	seen := map[uint64]bool{}
	for _, r := range n.Runs() {
		if seen[r.First] {
			continue
		}
		seen[r.First] = true
		lines, err := gzip.NewReader(bytes.NewReader(r.Payload))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(lines)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			counts[strings.TrimSuffix(line, "\n")]++
		}
	}
}
