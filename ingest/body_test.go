package ingest

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate-io/headgate/event"
)

// cut sends the first n bytes of a request and closes the sending side.
func (g *gate) cut(text string, n int) *client {
	c := g.dial().send(text[:n])
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		g.t.Fatal(err)
	}
	return c
}

func (g *gate) rejected(stream string, code event.Code) float64 {
	n := 0.0
	families, err := g.metrics.Gather()
	if err != nil {
		g.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "headgate_ingest_rejected_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			if m.GetLabel()[0].GetValue() == string(code) && m.GetLabel()[1].GetValue() == stream {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}

// counted is the sum of a counter over all labels.
func (g *gate) counted(name string) (sum float64) {
	g.t.Helper()
	families, err := g.metrics.Gather()
	if err != nil {
		g.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// F39, H01: wherever the body is cut, nothing of it is stored; each line before the cut would be a good event.
func TestF39H01CutBodies(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{})
	line := `{"a":"` + strings.Repeat("x", 55) + `"}` + "\n" // 64 bytes
	body := strings.Repeat(line, 40<<10/len(line))
	for name, c := range map[string]struct {
		text   string
		events int
	}{
		"with a length":   {request11(events, body, ndjson), 640},
		"chunked":         {chunked(events, ndjson) + chunks(body, 3000) + "0\r\n\r\n", 640},
		"a chunk a KiB":   {chunked(events, ndjson) + chunks(body, 1024) + "0\r\n\r\n", 640},
		"in line chunks":  {chunked(events, ndjson) + chunks(body, len(line)) + "0\r\n\r\n", 640},
		"with a trailer":  {chunked(events, ndjson) + chunks(body, 1000) + "0\r\nA: b\r\n\r\n", 640}, // H01b
		"expecting":       {request11(events, body, ndjson, "Expect: 100-continue"), 640},
		"small, a length": {request11(events, line+line, ndjson), 2},
	} {
		text, want := c.text, c.events
		head := strings.Index(text, "\r\n\r\n") + 4
		cuts := []int{head, head + 1, len(text) - 1, len(text) - 2, len(text) - 3, len(text) - 4, len(text) - 5}
		for n := head + 1024; n < len(text); n += 1024 {
			cuts = append(cuts, n)
		}
		for _, n := range cuts {
			c := g.cut(text, n)
			if name == "expecting" {
				c.r.ReadString('\n')
				c.r.ReadString('\n')
			}
			if r := c.answer(); r.StatusCode != 400 || r.doc.Code != string(event.IncompleteBody) || !r.Close || !r.doc.Retryable {
				t.Errorf("%s cut after %d of %d bytes: %d %s", name, n, len(text), r.StatusCode, r.body)
			}
			g.nothing()
		}
		c := g.dial().send(text)
		if name == "expecting" {
			c.r.ReadString('\n')
			c.r.ReadString('\n')
		}
		c.answer().want(t, 200, "")
		if got := g.data(); len(got) != want {
			t.Errorf("%s: %d events, want %d", name, len(got), want)
		}
	}
}

func TestBodiesArriveWhole(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{settings: Settings{Limits: Limits{Event: 1 << 20}}})
	for _, n := range []int{1, 2, 4096, 65536, 65537, 1 << 20} {
		body := strings.Repeat("ab", n)[:n]
		for _, text := range []string{request11(events, body, rawType), chunked(events, rawType) + chunks(body, 777) + "0\r\n\r\n"} {
			g.dial().send(text).answer().want(t, 200, "")
			if got := g.data(); !slices.Equal(got, []string{body}) {
				t.Errorf("%d bytes did not arrive as they were sent", n)
			}
		}
	}
}

func TestChunkedOverTheLimit(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{settings: Settings{Limits: Limits{Body: 1000}}})
	full := strings.Repeat("1\n", 500)
	c := g.dial().send(chunked(events, ndjson) + chunks(full, 100) + "0\r\n\r\n")
	c.answer().want(t, 200, "")
	g.data()
	c.send(chunked(events, ndjson) + chunks(full+"1\n", 100))
	if r := c.answer().want(t, 413, event.BodyTooLarge); r.doc.Scope != "body" || r.doc.Limit != 1000 {
		t.Errorf("got %s", r.body)
	}
	c.closed()
	g.nothing()
}

// warnings takes log records from Warn on.
type warnings struct {
	mu   sync.Mutex
	text []string
}

func (w *warnings) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }
func (w *warnings) WithAttrs([]slog.Attr) slog.Handler           { return w }
func (w *warnings) WithGroup(string) slog.Handler                { return w }
func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, r.Message)
	return nil
}

// H02: clients come and go, and talk nonsense; that is nothing to wake an operator for.
func TestH02ClientsFaultsAreNotLogged(t *testing.T) {
	log := &warnings{}
	g := serve(t, Config{}, &fakeStream{}, func(d *Deps) { d.Log = slog.New(log) })
	text := request11(events, "1\n2\n", ndjson)
	for n := range len(text) {
		g.dial().send(text[:n]).Close()
	}
	for _, nonsense := range []string{"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "GET / HTTP/0.9\r\n\r\n", chunked(events, ndjson) + "zz\r\n", strings.Repeat("x", 20<<10)} {
		g.cut(nonsense, len(nonsense)).Close()
	}
	g.dial().send(text).answer().want(t, 200, "")
	g.until(func() bool { return len(g.Server.open.all()) == 1 })
	log.mu.Lock()
	defer log.mu.Unlock()
	if len(log.text) > 0 {
		t.Errorf("logged %q", log.text)
	}
}

func TestH02ClientsThatVanishAndClientsThatTalkNonsense(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{})
	gone := g.dial().send(request11(events, "1\n2\n", ndjson)[:len(request11(events, "1\n2\n", ndjson))-1])
	gone.Close()
	bad := g.dial().send(chunked(events, ndjson) + "2\r\n1\n\r\nzz\r\n")
	bad.answer().want(t, 400, event.BadFraming)
	bad.closed()
	bad = g.dial().send(chunked(events, ndjson) + "2\r\n1\nX\r\n0\r\n\r\n")
	bad.answer().want(t, 400, event.BadFraming)
	g.until(func() bool { return g.rejected("s", event.IncompleteBody) == 1 })
	if n := g.rejected("s", event.BadFraming); n != 2 {
		t.Errorf("%v bad_framing counted", n)
	}
	g.nothing()
}

// until waits for a condition that another goroutine brings about.
func (g *gate) until(cond func() bool) {
	g.t.Helper()
	for end := time.Now().Add(patience); !cond(); runtime.Gosched() {
		if time.Now().After(end) {
			g.t.Fatal("waited in vain")
		}
	}
}

// slowly is a time to read in which what a test sends at once has come for certain.
const slowly = 5 * time.Second

func TestH03SlowClients(t *testing.T) {
	t.Parallel() // it waits
	g := serve(t, Config{ReadTimeout: slowly}, &fakeStream{})
	var all []*client
	for _, text := range []string{
		"POST " + events + " HTTP/1.1\r\nHost: x\r\nA",                                // header never ends
		request11(events, "1\n2\n", ndjson)[:len(request11(events, "", ndjson))],      // no body byte
		request11(events, "1\n2\n3\n", ndjson)[:len(request11(events, "", ndjson))+2], // then none
		chunked(events, ndjson) + "2\r\n1\n\r\n",
	} {
		all = append(all, g.dial().send(text))
	}
	for _, c := range all {
		c.answer().want(t, 408, event.RequestTimeout)
		c.closed()
	}
	g.nothing()
}

func TestBodyTime(t *testing.T) {
	for n, want := range map[int64]time.Duration{0: 5 * time.Second, 320 << 10: 5 * time.Second, 1 << 20: 16 * time.Second, 16 << 20: 256 * time.Second} {
		if got := bodyTime(n); got != want {
			t.Errorf("%d bytes: %v", n, got)
		}
	}
}

// Announcing is free: memory is taken for what arrives, and little of it on trust while it is scarce.
func TestAnnouncedBytesTakeNoMemory(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{})
	const many = 200
	text := request11(events, "", ndjson)
	text = strings.Replace(text, "Content-Length: 0", fmt.Sprintf("Content-Length: %d", 16<<20), 1) + "1"
	for _, c := range []struct{ held, each int64 }{{0, trusted}, {g.budget.Limit()/2 + 1, 1 << smallest}} {
		g.budget.Reserve(c.held)
		var open []*client
		for range many {
			open = append(open, g.dial().send(text))
		}
		g.until(func() bool { return g.budget.Held() == c.held+many*c.each })
		for _, c := range open {
			c.Close()
		}
		g.until(func() bool { return g.budget.Held() == c.held })
		g.budget.Release(c.held)
	}
}

func TestBudgetBoundsInflating(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{settings: Settings{Limits: Limits{Event: 64 << 20}}})
	if !g.budget.Reserve(60 << 20) {
		t.Fatal("budget")
	}
	g.post(gzipped(strings.Repeat("x", 100<<10), strings.Repeat("y", 5<<20)), rawType, "Content-Encoding: gzip").want(t, 413, event.InflatedTooLarge)
	noise := make([]byte, 6<<20)
	for i := range noise {
		noise[i] = byte(i * i >> 8)
	}
	g.post(string(noise), rawType).want(t, 503, event.Overloaded)
	g.budget.Release(60 << 20)
	g.post(string(noise), rawType).want(t, 200, "")
}

// A request may not allocate more for having more events.
func TestServeAllocations(t *testing.T) {
	m, err := newMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &core{gate: fakeGate{"s": quietStream()}, budget: unlimited(), metrics: m, timeout: time.Minute}
	h := &head{}
	if no := h.parse([]byte("host: x\r\ncontent-type: application/x-ndjson\r\n\r\n")); no != nil {
		t.Fatal(no.Problem)
	}
	measure := func(n int) (least float64) {
		body := []byte(strings.Repeat("{\"a\":\"0123456789012345678901234567890123456789\"}\n", n))
		src := bytes.NewReader(body)
		r := &request{method: []byte("POST"), target: []byte(events), fields: h.fields, length: int64(len(body)), body: src}
		run := func() {
			src.Reset(body)
			if a := c.serve(context.Background(), r); a.status != 200 {
				t.Fatalf("%d %s", a.status, a.doc)
			}
		}
		least = testing.AllocsPerRun(1, run)
		for range 100 { // the least of many: a pool may be emptied at any time, and under the race detector is at random
			least = min(least, testing.AllocsPerRun(1, run))
		}
		return least
	}
	few, many := measure(1), measure(500)
	if many > few+2 || many > 7 { // 7 is what it takes: what a feature needs that the request does not use is one too many
		t.Errorf("%.0f allocations with 1 event, %.0f with 500", few, many)
	}
	t.Logf("%.0f allocations a request", many)
}
