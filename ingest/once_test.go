package ingest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/window"
)

func TestIdempotencyKeySyntax(t *testing.T) {
	for _, c := range []struct{ value, key string }{
		{`k1`, `k1`}, {`"k1"`, `k1`}, {`"a\"b\\c"`, `a"b\c`}, {`8e03978e-40d5-43e8-bc93-6894a57f9324`, `8e03978e-40d5-43e8-bc93-6894a57f9324`},
		{`a b`, `a b`}, {strings.Repeat("x", 255), strings.Repeat("x", 255)}, {`"` + strings.Repeat("x", 255) + `"`, strings.Repeat("x", 255)},
		{``, ``}, {`""`, ``}, {`"`, ``}, {`"a`, ``}, {`"a"b"`, ``}, {`"a\"`, ``}, {`"a\n"`, ``}, {"a\tb", ``}, {"k\xc3\xa9", ``}, {"\x7f", ``},
		{strings.Repeat("x", 256), ``}, {`"k1"; p=1`, ``},
	} {
		key, no := idempotencyKey([]byte(c.value))
		if string(key) != c.key || (no == nil) != (c.key != "") {
			t.Errorf("%q: %q %v, want %q", c.value, key, no, c.key)
		}
	}
	g := serve(t, Config{}, &fakeStream{})
	g.post("{}", ndjson, `Idempotency-Key: "a`).want(t, 400, event.BadParameter)
	g.post("{}", ndjson, "Idempotency-Key: a", "Idempotency-Key: a").want(t, 400, event.BadParameter)
	if len(g.data()) != 0 {
		t.Error("stored")
	}
}

// A request with a key is stored once: what is sent again gets the answer of the first.
func TestKeyedRequestIsStoredOnce(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{}, remembering(100_000, 90*time.Second))
	first := g.post("{\"a\":1}\n{bad\n", ndjson, `Idempotency-Key: "k1"`, "X-Request-Id: one").want(t, 207, "")
	if first.Header.Get("Idempotency-Replayed") != "" || first.Header.Get("Headgate-Idempotency-Window") == "" {
		t.Errorf("%v", first.Header)
	}
	for i := range 3 {
		again := g.post("{\"a\":1}\n{bad\n", ndjson, `Idempotency-Key: k1`, fmt.Sprintf("X-Request-Id: again%d", i)).want(t, 207, "")
		h := again.Header
		if again.body != first.body || h.Get("Idempotency-Replayed") != "true" || h.Get("Headgate-Rejected") != "1" || h.Get("X-Request-Id") != fmt.Sprintf("again%d", i) {
			t.Errorf("%v %s, want %s", h, again.body, first.body)
		}
		g.post("{\"b\":1}\n", ndjson) // what reuses the memory of the answer
	}
	if got := g.data(); len(got) != 4 || got[0] != `{"a":1}` {
		t.Errorf("stored %q", got)
	}
	const want = "# HELP headgate_idempotency_keys Idempotency keys that are remembered with their answers.\n" +
		"# TYPE headgate_idempotency_keys gauge\nheadgate_idempotency_keys 1\n"
	if err := testutil.GatherAndCompare(g.metrics, strings.NewReader(want), "headgate_idempotency_keys"); err != nil {
		t.Error(err)
	}
}

// Everything that makes the content of a request is bound to its key.
func TestKeyWithOtherContentIsRefused(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{settings: Settings{Headers: []string{"x-id"}}})
	send := func(target, body string, header ...string) result {
		return g.dial().send(request11(target, body, append(header, "Idempotency-Key: k")...)).answer()
	}
	send(events, "{}", ndjson).want(t, 200, "")
	send(events, "{} ", ndjson).want(t, 422, event.IdempotencyMismatch)
	send(events, "{}", "Content-Type: application/json").want(t, 422, event.IdempotencyMismatch)
	send(events+"?ack=delivered", "{}", ndjson).want(t, 422, event.IdempotencyMismatch)
	send(events, "{}", ndjson, "Headgate-Key: x").want(t, 422, event.IdempotencyMismatch)
	send(events, "{}", ndjson, "Headgate-Ack: accepted").want(t, 422, event.IdempotencyMismatch)
	send(events, "{}", ndjson, "Headgate-Source: other").want(t, 422, event.IdempotencyMismatch)
	send(events, "{}", ndjson, "X-Id: 7").want(t, 422, event.IdempotencyMismatch)
	send(events, gzipped("{}"), ndjson, "Content-Encoding: gzip").want(t, 422, event.IdempotencyMismatch)
	if a := send(events, "{}", ndjson, "User-Agent: other").want(t, 200, ""); a.Header.Get("Idempotency-Replayed") != "true" {
		t.Error("not replayed")
	}
	if got := g.data(); len(got) != 1 {
		t.Errorf("stored %q", got)
	}
}

// Only what stored something binds a key: a client that mends its request may send it with the same one.
func TestRefusedRequestFreesItsKey(t *testing.T) {
	full := true
	g := serve(t, Config{}, &fakeStream{accept: func(context.Context, *event.Batch) error {
		if full {
			return event.Problemf(event.BackendFull, "full")
		}
		return nil
	}})
	key := "Idempotency-Key: k"
	g.post("{bad", ndjson, key).want(t, 400, event.MalformedJSON)
	g.post("{}", ndjson, key).want(t, 503, event.BackendFull)
	full = false
	g.post("{}", ndjson, key).want(t, 200, "")
	if got := g.data(); len(got) != 1 {
		t.Errorf("stored %q", got)
	}
}

// A07: the client goes away behind the last byte of its body. The request is stored all the same, and what is sent again
// is told 409 while it runs, then its answer.
func TestA07ClientLeavesBeforeItsAnswer(t *testing.T) {
	arrived, proceed := make(chan struct{}), make(chan struct{})
	g := serve(t, Config{}, &fakeStream{accept: func(context.Context, *event.Batch) error {
		close(arrived)
		<-proceed
		return nil
	}})
	body := strings.Repeat("{\"a\":1}\n", 100)
	key := `Idempotency-Key: "k1"`
	c := g.dial().send(request11(events, body, ndjson, key))
	<-arrived
	c.Close()
	a := g.post(body, ndjson, key).want(t, 409, event.IdempotencyInFlight)
	if !a.doc.Retryable || a.Header.Get("Retry-After") == "" {
		t.Errorf("%v %s", a.Header, a.body)
	}
	close(proceed)
	for a.StatusCode == 409 {
		a = g.post(body, ndjson, key)
	}
	if a.want(t, 200, ""); a.doc.Accepted != 100 || a.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("%v %s", a.Header, a.body)
	}
	if n := len(g.data()); n != 100 {
		t.Errorf("%d events are stored, want 100", n)
	}
}

// A request whose outcome was not known in time goes on holding its key: a repetition waits and gets the outcome.
func TestUnknownOutcomeIsToldToTheRepetition(t *testing.T) {
	late := make(chan func(*event.Batch, error), 1)
	var kept *event.Outline
	g := serve(t, Config{RequestTimeout: 500 * time.Millisecond}, &fakeStream{accept: func(_ context.Context, b *event.Batch) error {
		kept = b.Outline()
		late <- b.Late
		return &event.Problem{Code: event.AckTimeout, Stored: "unknown"}
	}})
	key := "Idempotency-Key: k"
	body := "{}\n{bad\n{}\n"
	for range 3 { // and nothing is stored by asking
		if a := g.post(body, ndjson, key).want(t, 503, event.AckTimeout); a.doc.Stored != "unknown" || !a.doc.Retryable {
			t.Error(a.body)
		}
	}
	g.post("{}", ndjson, key).want(t, 422, event.IdempotencyMismatch)
	waiting := g.dial().send(request11(events, body, ndjson, key))
	b := kept.Batch()
	b.Reject(2, event.BackendRefused, "refused late")
	(<-late)(b, nil)
	waiting.answer() // either
	a := g.post(body, ndjson, key).want(t, 207, "")
	if a.doc.Accepted != 1 || a.doc.Rejected != 2 || a.Header.Get("Headgate-Rejected") != "2" || len(a.doc.Errors) != 2 || a.doc.Errors[1].Offset != 8 {
		t.Error(a.body)
	}
	if len(late) != 0 {
		t.Error("it was stored again")
	}
}

// What failed after all frees the key, and the one that waits takes its turn.
func TestLateRefusalLetsTheRepetitionIn(t *testing.T) {
	late := make(chan func(*event.Batch, error), 1)
	var kept *event.Outline
	first := true
	g := serve(t, Config{}, &fakeStream{accept: func(_ context.Context, b *event.Batch) error {
		if !first {
			return nil
		}
		first = false
		kept = b.Outline()
		late <- b.Late
		return &event.Problem{Code: event.AckTimeout, Stored: "unknown"}
	}})
	key := "Idempotency-Key: k"
	g.post("{}", ndjson, key).want(t, 503, event.AckTimeout)
	waiting := g.dial().send(request11(events, "{}", ndjson, key))
	b := kept.Batch()
	b.Reject(0, event.BackendRefused, "no")
	(<-late)(b, nil)
	if a := waiting.answer().want(t, 200, ""); a.doc.Accepted != 1 {
		t.Error(a.body)
	}
}

// When all keys are of running requests, another one is not taken: it could not be recognised.
func TestFullOfRunningKeys(t *testing.T) {
	arrived, proceed := make(chan struct{}), make(chan struct{})
	g := serve(t, Config{}, &fakeStream{accept: func(_ context.Context, b *event.Batch) error {
		if len(b.Events) == 2 {
			close(arrived)
			<-proceed
		}
		return nil
	}}, remembering(1, time.Minute))
	c := g.dial().send(request11(events, "{}\n{}\n", ndjson, "Idempotency-Key: one"))
	<-arrived
	g.post("{}", ndjson, "Idempotency-Key: two").want(t, 503, event.Overloaded)
	g.post("{}", ndjson).want(t, 200, "")
	close(proceed)
	c.answer().want(t, 200, "")
	if a := g.post("{}", ndjson, "Idempotency-Key: two").want(t, 200, ""); a.Header.Get("Headgate-Idempotency-Window") != "0" {
		t.Errorf("the window reaches %s s back, although the only key had to make room", a.Header.Get("Headgate-Idempotency-Window"))
	}
}

// A panic does not keep a key for ever.
func TestPanicFreesItsKey(t *testing.T) {
	broken := true
	g := serve(t, Config{}, &fakeStream{accept: func(context.Context, *event.Batch) error {
		if broken {
			panic("BUG: test")
		}
		return nil
	}})
	g.post("{}", ndjson, "Idempotency-Key: k").want(t, 500, event.Internal)
	broken = false
	g.post("{}", ndjson, "Idempotency-Key: k").want(t, 200, "")
}

func remembering(keys int, age time.Duration) func(*Deps) {
	return func(d *Deps) { d.Keys = window.NewKeys(keys, age, time.Now()) }
}
