package ingest

import (
	"bytes"
	"context"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/budget"
)

const plainText = "Content-Type: text/plain"

// tiny is a body of n events of one byte, which in memory are some hundred times as large.
func tiny(n int) string { return strings.Repeat("1\n", n) }

// newCore is a core without a transport, whose one stream is s.
func newCore(t *testing.T, b *budget.Budget, s *fakeStream) *core {
	t.Helper()
	m, err := newMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &core{gate: fakeGate{"s": s}, budget: b, metrics: m, timeout: time.Minute, heavy: newHeavy(1)}
}

// request asks the core for what text, in the type of header, is answered with.
func (c *core) post(t *testing.T, target, text string, header ...string) (answer, document) {
	t.Helper()
	h := &head{}
	if no := h.parse([]byte(strings.Join(header, "\r\n") + "\r\n\r\n")); no != nil {
		t.Fatal(no.Problem)
	}
	a := c.serve(context.Background(), &request{
		method: []byte("POST"), target: []byte(target), fields: h.fields, length: int64(len(text)), body: strings.NewReader(text), addr: netip.Addr{},
	})
	var d document
	if err := json.Unmarshal(a.doc, &d); err != nil {
		t.Fatalf("%d %s: %v", a.status, a.doc, err)
	}
	return a, d
}

// TestB01TinyEventsArePaidFor: what events cost is not their bytes but their number.
func TestB01TinyEventsArePaidFor(t *testing.T) {
	const n, least = 100_000, 100_000 * 100
	limit := budget.New(64 << 20)
	held := int64(0)
	s := &fakeStream{accept: func(context.Context, *event.Batch) error { held = limit.Held(); return nil }}
	c := newCore(t, limit, s)
	if a, d := c.post(t, events, tiny(n), plainText); a.status != 200 || d.Accepted != n {
		t.Fatalf("%d %s", a.status, a.doc)
	}
	if held < least || held > 4*least {
		t.Errorf("%d bytes are held for %d events", held, n)
	}
	s.take()

	limit.Reserve(60 << 20) // others
	if a, d := c.post(t, events, tiny(n), plainText); a.status != 503 || d.Code != string(event.Overloaded) || d.Stored != "no" || !d.Retryable {
		t.Errorf("with too little left: %d %s", a.status, a.doc)
	}
	if a, _ := c.post(t, events, tiny(10), plainText); a.status != 200 {
		t.Errorf("a small one: %d %s", a.status, a.doc)
	}
	if limit.Held() != 60<<20 {
		t.Errorf("%d bytes are held afterwards", limit.Held())
	}
	c.budget = budget.New(8 << 20)
	if a, d := c.post(t, events, tiny(n), plainText); a.status != 413 || d.Code != string(event.RequestTooLarge) || d.Scope != "memory" || d.Limit != 8<<20 ||
		d.Observed <= d.Limit || d.Retryable {
		t.Errorf("what can never fit: %d %s", a.status, a.doc)
	}
	if len(s.take()) != 10 || c.budget.Held() != 0 {
		t.Errorf("something is left: %d bytes held", c.budget.Held())
	}
}

// Requests at once pay for all of their events together: the sum never exceeds the budget.
func TestB01ManyTinyEventsAtOnce(t *testing.T) {
	limit := budget.New(32 << 20)
	var c *core
	most := make(chan int64, 100)
	s := &fakeStream{accept: func(_ context.Context, b *event.Batch) error {
		most <- limit.Held()
		for i := range b.Events {
			b.Events[i].Verdict = event.Filtered
		}
		return nil
	}}
	c = newCore(t, limit, s)
	answers := make(chan int)
	for range cap(most) {
		go func() {
			a, _ := c.post(t, events, tiny(20_000), plainText)
			answers <- a.status
		}()
	}
	got := map[int]int{}
	for range cap(most) {
		got[<-answers]++
	}
	close(most)
	for held := range most {
		if held > limit.Limit() {
			t.Errorf("%d of %d bytes are held", held, limit.Limit())
		}
	}
	if got[200] == 0 || got[200]+got[503] != cap(most) || limit.Held() != 0 {
		t.Errorf("answers %v, %d bytes held afterwards", got, limit.Held())
	}
}

// One large body is decoded at a time here. Others wait, no longer than they have time, and small ones do not.
func TestLargeBodiesWaitForTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := quietStream()
		s.settings.Limits.Ratio = 1 << 20
		c := newCore(t, budget.New(64<<20), s)
		other := &account{heavy: c.heavy, until: time.Now().Add(time.Hour)}
		if other.wait() != nil {
			t.Fatal("no turn")
		}
		for name, body := range map[string]string{"many events": tiny(heavyEvents + 1), "many bytes": tiny(10) + strings.Repeat("x", heavyBytes)} {
			start := time.Now()
			a, d := c.post(t, events, body, plainText)
			if took := time.Since(start); a.status != 503 || d.Code != string(event.Overloaded) || d.Stored != "no" || took != c.timeout {
				t.Errorf("%s: %d %s after %v", name, a.status, a.doc, took)
			}
			body = gzipped(body)
			start = time.Now()
			a, d = c.post(t, events, body, plainText, "Content-Encoding: gzip")
			if took := time.Since(start); a.status != 503 || d.Code != string(event.Overloaded) || took != c.timeout {
				t.Errorf("%s, gzip: %d %s after %v", name, a.status, a.doc, took)
			}
		}
		start := time.Now()
		if a, _ := c.post(t, events, tiny(1000), plainText); a.status != 200 || time.Since(start) > 0 {
			t.Errorf("a small one: %d %s", a.status, a.doc)
		}
		go func() { <-time.After(time.Second); other.rest() }()
		if a, _ := c.post(t, events, tiny(heavyEvents+1), plainText); a.status != 200 || time.Since(start) != time.Second {
			t.Errorf("when the turn is free: %d %s after %v", a.status, a.doc, time.Since(start))
		}
		if len(c.heavy.turns) != 0 || c.budget.Held() != 0 {
			t.Errorf("%d turns and %d bytes are left", len(c.heavy.turns), c.budget.Held())
		}
	})
}

// The time of a request begins with the end of its body: what it waited to be decoded is not there for its stream.
func TestTheDeadlineCountsFromTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var left time.Duration
		c := newCore(t, budget.New(64<<20), &fakeStream{accept: func(ctx context.Context, _ *event.Batch) error {
			until, _ := ctx.Deadline()
			left = time.Until(until)
			return nil
		}})
		other := &account{heavy: c.heavy, until: time.Now().Add(time.Hour)}
		other.wait()
		go func() { <-time.After(20 * time.Second); other.rest() }()
		if a, _ := c.post(t, events, tiny(heavyEvents+1), plainText); a.status != 200 || left != c.timeout-20*time.Second {
			t.Errorf("%d, the stream has %v", a.status, left)
		}
	})
}

// The answer to a dry run is bounded, and held against the budget until it is sent.
func TestDryRunAnswersArePaidFor(t *testing.T) {
	limit := budget.New(64 << 20)
	c := newCore(t, limit, &fakeStream{accept: func(_ context.Context, b *event.Batch) error {
		for i := range b.Events {
			b.Events[i].Key, b.Events[i].HasKey, b.Events[i].Slot, b.Events[i].Child = b.Key, b.HasKey, event.NoSlot, event.NoSlot
		}
		b.Trace("key")
		return nil
	}})
	const key = "Headgate-Key: "
	for _, n := range []int{0, 1, 100, 2000} {
		a, _ := c.post(t, events+"?dry_run=true", tiny(n), plainText, key+strings.Repeat("<", 1024))
		var doc trialDocument
		if err := json.Unmarshal(a.doc, &doc); err != nil || doc.Accepted != n || doc.Truncated != (len(doc.Events) < n) || a.status != 200 {
			t.Fatalf("%d events: %d, %v, %+v", n, a.status, err, doc)
		}
		if n <= 100 && doc.Truncated || n == 2000 && (len(doc.Events) < 900 || len(doc.Events) >= event.MaxTraces) {
			t.Errorf("%d of %d events are explained", len(doc.Events), n)
		}
		if bytes.Contains(a.doc, []byte(`\u003c`)) || len(a.doc) > mostExplained+8<<10 {
			t.Errorf("%d events: %d bytes, or escaped", n, len(a.doc))
		}
		if a.owed != int64(cap(a.doc)) || limit.Held() != a.owed {
			t.Errorf("%d events: a document of %d bytes owes %d, held are %d", n, cap(a.doc), a.owed, limit.Held())
		}
		limit.Release(a.owed)
	}
	limit.Reserve(63 << 20)
	if a, d := c.post(t, events+"?dry_run=true", tiny(1000), plainText, key+strings.Repeat("k", 1024)); a.status != 503 || d.Code != string(event.Overloaded) {
		t.Errorf("without memory: %d, %d bytes", a.status, len(a.doc))
	}
	if limit.Held() != 63<<20 {
		t.Errorf("%d bytes are held", limit.Held())
	}
}

// An answer is paid for until its client has it, or has gone.
func TestAnswersAreHeldUntilTheyAreRead(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{accept: func(_ context.Context, b *event.Batch) error {
		for i := range b.Events {
			b.Events[i].Key, b.Events[i].HasKey, b.Events[i].Slot, b.Events[i].Child = b.Key, true, event.NoSlot, event.NoSlot
		}
		b.Trace("key")
		return nil
	}})
	request := request11(events+"?dry_run=true", tiny(1000), plainText, "Headgate-Key: "+strings.Repeat("k", 1024))
	const pipelined = 20 // 20 MB: more than the sockets take
	reading, leaving := g.dial(), g.dial()
	reading.send(strings.Repeat(request, pipelined))
	leaving.send(strings.Repeat(request, pipelined))
	g.until(func() bool { return g.budget.Held() > 2<<20 })
	for range pipelined {
		if a := reading.answer(); a.StatusCode != 200 || len(a.body) < mostExplained {
			t.Fatalf("%d, %d bytes", a.StatusCode, len(a.body))
		}
	}
	leaving.Close()
	g.until(func() bool { return g.budget.Held() == 0 })
}

// Who inflates a large body has its turn for that, and not while what is refused is tried again: a session holds a frame for long.
func TestTheTurnEndsWithABodyThatDoesNotInflate(t *testing.T) {
	s := quietStream()
	c := newCore(t, budget.New(64<<20), s)
	w := takeWork(c.budget, c.heavy)
	defer w.give()
	w.account.until = time.Now().Add(time.Hour)
	coded := snapped(strings.Repeat("0123456789", heavyBytes/5))
	coded = coded[:len(coded)-1]
	if err := w.body.open(int64(len(coded))); err != nil {
		t.Fatal(err)
	}
	w.body.slab.b = append(w.body.slab.b, coded...)
	p := &plan{settings: &s.settings, limits: s.settings.limits(), counters: c.metrics.stream("s")}
	p.codings.applied[0], p.codings.n = snappyCoding, 1
	if problem := c.inflate(p, w); problem == nil || problem.Code != event.BadSnappy {
		t.Fatalf("it inflates: %v", problem)
	}
	if w.account.turn || len(c.heavy.turns) > 0 {
		t.Error("the turn is not over")
	}
}
