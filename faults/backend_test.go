package faults

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/forward/forwardtest"
	"github.com/headgate-io/headgate/sdk/consume"
)

// F15: the backend is away for long, and what came meanwhile is delivered at least twice as fast as it came.
func TestF15BackendDownThenDrain(t *testing.T) {
	long(t)
	const away = time.Minute
	b := newBed(t, result{Fault: "F15", What: "backend away for " + away.String(), Cycles: 1}).onNode().with("spool.max_bytes=4GiB")
	b.load.levels = []string{"durable"}
	b.node.Stop()
	g := start(t, b.data, "", b.settings...)
	began := time.Now()
	b.under(g, away)
	in := float64(b.load.acked()) / time.Since(began).Seconds()
	if g.metric("headgate_spool_events")+g.metric("headgate_lane_events") < float64(b.load.acked()) {
		t.Error("events have gone, and there is no backend")
	}
	began = time.Now()
	b.node.Start()
	healthy := time.Duration(0)
	g.until("everything is delivered", func() bool {
		if status, _ := g.get("/readyz"); status == 200 && healthy == 0 {
			healthy = time.Since(began)
		}
		return g.metric("headgate_lane_events") == 0 && g.metric("headgate_spool_events") == 0
	})
	took := time.Since(began)
	b.Recover = healthy.Seconds()
	g.kill()
	r := b.finish()
	r.Note = fmt.Sprintf("in %s events/s, out %s events/s, healthy after %.1f s", thousands(int(in)), thousands(int(float64(r.Acked)/took.Seconds())), healthy.Seconds())
	say(t, r)
}

// F16, F18: a node takes a second for each post, or takes connections and says nothing at all. Its stream waits in the
// spool; another stream, on JetStream, goes on.
func TestF16F18SlowAndSilentBackends(t *testing.T) {
	long(t)
	for fault, pause := range map[string]time.Duration{"F16": time.Second, "F18": time.Hour} {
		b := newBed(t, result{Fault: fault, What: map[string]string{"F16": "a slow backend", "F18": "a backend that says nothing"}[fault], Cycles: 1})
		b.onNode().with("backends.lake.webhook.timeout=2s")
		b.load.levels = []string{"durable"}
		healed := make(chan struct{})
		var once sync.Once
		heal := func() { once.Do(func() { close(healed) }) }
		t.Cleanup(heal)
		b.node.Judge(func(*forward.Run) forwardtest.Answer {
			wait := make(chan struct{})
			go func() {
				defer close(wait)
				select {
				case <-healed:
				case <-time.After(pause):
				}
			}()
			return forwardtest.Answer{After: wait}
		})
		g := start(t, b.data, "", b.settings...)
		other := 0
		over := make(chan struct{})
		go func() {
			defer close(over)
			b.under(g, 10*time.Second)
		}()
		for running := true; running; other++ {
			if status, answer, _ := g.post("other", "ack=delivered", `{"n":1}`); status != 200 {
				t.Fatalf("%s: another stream: %d %s", fault, status, answer)
			}
			select {
			case <-over:
				running = false
			default:
			}
		}
		waits := b.load.waits("durable")
		note := fmt.Sprintf("durable p99 %.0f ms; %d requests to another stream meanwhile", ms(percentile(waits, 99)), other)
		heal()
		g.idle()
		g.kill()
		r := b.finish()
		r.Note = note
		say(t, r)
	}
}

// F17: a node that comes and goes is not stormed: runs are sent again with growing pauses.
func TestF17FlappingBackend(t *testing.T) {
	long(t)
	b := newBed(t, result{Fault: "F17", What: "a backend that comes and goes"}).onNode().with("http.request_timeout=10s")
	g := start(t, b.data, "", b.settings...)
	over := make(chan struct{})
	go func() {
		defer close(over)
		b.under(g, 30*time.Second)
	}()
	turn := time.NewTicker(2 * time.Second)
	defer turn.Stop()
	for running := true; running; {
		select {
		case <-turn.C:
			b.node.down.Store(10 - b.node.down.Load())
			b.Cycles++
		case <-over:
			running = false
		}
	}
	b.node.down.Store(0)
	g.idle()
	posts, runs := b.node.Posts(), len(b.node.Runs())
	if posts > 3*runs+100 {
		t.Errorf("%d posts for %d runs: a storm", posts, runs)
	}
	g.kill()
	r := b.finish()
	r.Note = fmt.Sprintf("%d posts for %d runs", posts, runs)
	say(t, r)
}

// F21: one event that the node refuses for good is set aside alone, with its reason; its partition moves on.
func TestF21PoisonEvent(t *testing.T) {
	b := newBed(t, result{Fault: "F21", What: "an event that the backend refuses", Cycles: 1}).onNode().with("http.request_timeout=5m")
	const poison = `{"id":"poison","k":"key-0-0"}`
	b.node.Judge(func(r *forward.Run) forwardtest.Answer {
		a := forwardtest.Answer{}
		_ = consume.Decode(r.Payload, r.ContentEncoding, r.ContentType, func(e consume.Event) error {
			if string(e.Data) == poison {
				a = forwardtest.Answer{Status: 422, Body: "poison"}
			}
			return nil
		})
		return a
	})
	g := start(t, b.data, "", b.settings...)
	over := make(chan struct{})
	go func() { b.under(g, 500*time.Millisecond); close(over) }()
	status, answer, took := g.post(mainStream, "ack=delivered", poison)
	if !strings.Contains(answer, `"deadlettered":1`) {
		t.Errorf("%d %s", status, answer)
	}
	if took > 5*time.Second && os.Getenv("FAULTS") != "" { // the quick form runs beside everything else
		t.Errorf("it kept its partition for %s", took)
	}
	<-over
	g.idle()
	if rows := g.rows(mainStream + ".deadletter"); len(rows) != 1 || rows[0].Data != poison {
		t.Errorf("the dead letter has %d events: %.500v", len(rows), rows)
	}
	b.Recover = took.Seconds()
	g.kill()
	r := b.finish()
	r.Note = fmt.Sprintf("its partition went on after %.0f ms", ms(took))
	say(t, r)
}
