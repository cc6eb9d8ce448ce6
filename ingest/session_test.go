package ingest

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/quic-go/quic-go"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/budget"
	"github.com/headgate-io/headgate/internal/lossy"
	"github.com/headgate-io/headgate/sdk/session"
	"github.com/headgate-io/headgate/sdk/wire"
)

// sessionGate is a server that is reached over a simulated network. It is used inside a bubble of synctest.
type sessionGate struct {
	*quicSide
	*fakeStream
	*lossy.Network
	t      *testing.T
	budget *budget.Budget
	at     *lossy.Endpoint
	next   int
	ended  bool
	ran    chan struct{}
}

func serveSessions(t *testing.T, s *fakeStream, change ...func(*Deps)) *sessionGate {
	t.Helper()
	return serveSessionsAt(t, s, lossy.New(1, 10*time.Millisecond), change...)
}

func serveSessionsAt(t *testing.T, s *fakeStream, n *lossy.Network, change ...func(*Deps)) *sessionGate {
	t.Helper()
	g := &sessionGate{fakeStream: s, Network: n, t: t, budget: budget.New(64 << 20), ran: make(chan struct{})}
	g.at = g.Endpoint("10.0.0.1:443")
	deps := Deps{Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(), Budget: g.budget}
	for _, c := range change {
		c(&deps)
	}
	g.budget = deps.Budget
	server, err := New(Config{QUIC: &QUICConfig{Conn: g.at, TLS: secret(t)}}, fakeGate{"s": s}, deps)
	if err != nil {
		t.Fatal(err)
	}
	g.quicSide = server.quic
	if _, err := g.listen(); err != nil {
		t.Fatal(err)
	}
	go func() { defer close(g.ran); g.run() }()
	return g
}

// end stops the server, and checks that nothing is held.
func (g *sessionGate) end() {
	if g.ended {
		return
	}
	g.ended = true
	if err := g.shutdown(context.Background()); err != nil {
		g.t.Errorf("shutdown: %v", err)
	}
	<-g.ran
	if held := g.budget.Held(); held != 0 {
		g.t.Errorf("%d bytes of the budget are still reserved", held)
	}
}

// rawClient is a connection with one stream.
type rawClient struct {
	t    *testing.T
	conn *quic.Conn
	str  *quic.Stream
	in   *bufio.Reader
	end  func()
}

func (g *sessionGate) dial() *rawClient {
	g.t.Helper()
	g.next++
	at := g.Endpoint(fmt.Sprintf("10.0.1.%d:4000", g.next))
	tr := &quic.Transport{Conn: at}
	conn, err := tr.Dial(g.t.Context(), g.at.LocalAddr(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{session.Protocol}}, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	c := &rawClient{t: g.t, conn: conn, end: func() { tr.Close(); at.Close() }}
	c.open()
	return c
}

func (c *rawClient) open() {
	c.t.Helper()
	str, err := c.conn.OpenStream()
	if err != nil {
		c.t.Fatal(err)
	}
	c.str, c.in = str, bufio.NewReader(str)
}

func (c *rawClient) close() { c.conn.CloseWithError(0, ""); c.end() }

func (c *rawClient) send(frames ...session.Frame) *rawClient {
	c.t.Helper()
	for _, f := range frames {
		if _, err := c.str.Write(f.Append(nil)); err != nil {
			c.t.Fatalf("send %T: %v", f, err)
		}
	}
	return c
}

// events sends an EVENTS frame of lines.
func (c *rawClient) events(first uint64, events ...string) *rawClient {
	c.t.Helper()
	body := strings.Join(events, "\n") + "\n"
	h := session.EventsHead{First: first, Count: uint64(len(events)), Framing: session.Lines}
	if _, err := c.str.Write(append(session.AppendEventsHead(nil, h, len(body)), body...)); err != nil {
		c.t.Fatalf("send EVENTS: %v", err)
	}
	return c
}

// frame returns the next frame.
func (c *rawClient) frame() session.Frame {
	c.t.Helper()
	t, length, err := session.ReadHead(c.in)
	if err == io.EOF {
		return nil
	}
	var payload []byte
	if err == nil {
		payload, err = session.ReadControl(c.in, length, nil)
	}
	f := map[session.Type]session.Frame{session.TypeWelcome: &session.Welcome{}, session.TypeAck: &session.Ack{}, session.TypeResult: &session.Result{},
		session.TypeReject: &session.Reject{}, session.TypeCredit: &session.Credit{}, session.TypeSlowDown: &session.SlowDown{},
		session.TypeGoAway: &session.GoAway{}, session.TypeError: &session.Error{}, session.TypeFin: &session.Fin{}}[t]
	if err == nil {
		err = f.Parse(payload)
	}
	if err != nil {
		c.t.Fatalf("read a frame: %v", err)
	}
	return f
}

// until reads frames up to the first for which ok is true, and returns all of them.
func (c *rawClient) until(ok func(session.Frame) bool) (all []session.Frame) {
	c.t.Helper()
	for {
		f := c.frame()
		if f == nil {
			c.t.Fatalf("the stream ended behind %s", described(all))
		}
		if all = append(all, f); ok(f) {
			return all
		}
	}
}

func described(all []session.Frame) (text string) {
	for _, f := range all {
		text += fmt.Sprintf("%T%+v ", f, f)
	}
	return text
}

func isAck(level session.Level, upTo uint64) func(session.Frame) bool {
	return func(f session.Frame) bool {
		a, ok := f.(*session.Ack)
		return ok && a.Level == level && a.UpTo >= upTo
	}
}

func is[F session.Frame](f session.Frame) bool { _, ok := f.(F); return ok }

func hello(name string) *session.Hello {
	return &session.Hello{Version: session.Version, Stream: "s", Session: name}
}

// welcome says HELLO and returns the answer.
func (c *rawClient) welcome(h *session.Hello) *session.Welcome {
	c.t.Helper()
	f := c.send(h).frame()
	w, ok := f.(*session.Welcome)
	if !ok {
		c.t.Fatalf("no welcome: %T%+v", f, f)
	}
	return w
}

// inSession runs a test in a bubble with a server and a client.
func inSession(t *testing.T, s *fakeStream, test func(t *testing.T, g *sessionGate, c *rawClient)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := serveSessions(t, s)
		defer g.end()
		c := g.dial()
		defer c.close()
		test(t, g, c)
	})
}

// awake is inSession outside of a bubble: decoders are pooled, and belong to no bubble.
func awake(t *testing.T, s *fakeStream, test func(t *testing.T, g *sessionGate, c *rawClient)) {
	t.Helper()
	g := serveSessions(t, s)
	defer g.end()
	c := g.dial()
	defer c.close()
	test(t, g, c)
}

func TestSessionTakesEventsInOrder(t *testing.T) {
	inSession(t, &fakeStream{}, func(t *testing.T, g *sessionGate, c *rawClient) {
		w := c.welcome(&session.Hello{Version: 1, Stream: "s", Session: "a", Source: "me", Fields: []session.Field{{Name: "Headgate-Key", Value: "k"}}})
		if w.Session != "a" || w.Settled != 0 || w.Credit != wholeCredit || w.Level != session.Durable || w.MostEvent != 1<<20 || w.MostFrame != 16<<20 {
			t.Errorf("%+v", w)
		}
		c.events(1, "1", "2").events(3, "3").send(&session.Fin{})
		all := c.until(is[*session.Fin])
		if !slices.ContainsFunc(all, isAck(session.Accepted, 3)) || !slices.ContainsFunc(all, isAck(session.Durable, 3)) {
			t.Errorf("watermarks: %s", described(all))
		}
		var results []session.Result
		credit := uint64(0)
		for _, f := range all {
			switch f := f.(type) {
			case *session.Result:
				results = append(results, *f)
			case *session.Credit:
				credit += f.Bytes
			}
		}
		if want := []session.Result{{First: 1, Count: 2, Level: 2, Accepted: 2}, {First: 3, Count: 1, Level: 2, Accepted: 1}}; !slices.Equal(results, want) {
			t.Errorf("results %+v", results)
		}
		if credit != 8+6 {
			t.Errorf("%d bytes of credit came back", credit)
		}
		if c.frame() != nil {
			t.Error("the stream does not end behind FIN")
		}
		got := g.take()
		if len(got) != 3 || got[0].data != "1" || got[2].data != "3" || got[0].key != "k" || got[0].producer != "me" || got[0].ack != event.Durable {
			t.Errorf("stored %+v", got)
		}
	})
}

func TestE06RejectedEventsAreNamed(t *testing.T) {
	inSession(t, &fakeStream{}, func(t *testing.T, g *sessionGate, c *rawClient) {
		c.welcome(hello("a"))
		c.events(10, "1", "{", "2").send(&session.Fin{})
		all := c.until(is[*session.Fin])
		i := slices.IndexFunc(all, is[*session.Reject])
		if i < 0 {
			t.Fatalf("%s", described(all))
		}
		if r := all[i].(*session.Reject); r.Seq != 11 || r.Code != "malformed_json" || r.Retryable {
			t.Errorf("%+v", r)
		}
		if r := all[i+1].(*session.Result); r.Accepted != 2 || r.Rejected != 1 {
			t.Errorf("%+v", r)
		}
	})
}

// What is known of a session goes with it to another connection, and no event is stored twice.
func TestSessionIsResumed(t *testing.T) {
	inSession(t, &fakeStream{}, func(t *testing.T, g *sessionGate, c *rawClient) {
		c.welcome(hello("a"))
		c.events(1, "1", "{").events(3, "3")
		c.until(isAck(session.Durable, 3))
		c.close() // and the outcomes were not heard
		d := g.dial()
		defer d.close()
		if w := d.welcome(hello("a")); w.Settled != 3 {
			t.Errorf("settled %d", w.Settled)
		}
		all := d.until(isAck(session.Durable, 3))
		if len(all) != 4 || !is[*session.Reject](all[0]) || !is[*session.Result](all[1]) || !is[*session.Result](all[2]) {
			t.Errorf("outcomes %s", described(all))
		}
		d.events(1, "1", "{").events(3, "3").events(4, "4").send(&session.Fin{}) // as one that has forgotten what it knew
		d.until(is[*session.Fin])
		if got := g.data(); !slices.Equal(got, []string{"1", "3", "4"}) {
			t.Errorf("stored %q", got)
		}
	})
}

// A client that has heard the outcome does not hear it again.
func TestOutcomesAreNotRepeated(t *testing.T) {
	inSession(t, &fakeStream{}, func(t *testing.T, g *sessionGate, c *rawClient) {
		c.welcome(hello("a"))
		c.events(1, "1")
		c.until(isAck(session.Durable, 1))
		h := hello("a")
		h.Acked = 1
		c.open()
		c.welcome(h)
		c.events(2, "2").send(&session.Fin{})
		for _, f := range c.until(is[*session.Fin]) {
			if r, ok := f.(*session.Result); ok && r.First != 2 {
				t.Errorf("again: %+v", r)
			}
		}
	})
}

// A session is on one stream: the older is ended when what it has taken is settled, so that nothing is taken twice.
func TestSessionIsTakenOver(t *testing.T) {
	release := make(chan struct{})
	s := &fakeStream{accept: func(_ context.Context, b *event.Batch) error {
		b.Reach(event.Accepted)
		<-release
		return nil
	}}
	synctest.Test(t, func(t *testing.T) {
		release = make(chan struct{})
		g := serveSessions(t, s)
		defer g.end()
		c, d := g.dial(), g.dial()
		defer c.close()
		defer d.close()
		c.welcome(hello("a"))
		c.events(1, "1")
		c.until(isAck(session.Accepted, 1))
		welcomed := make(chan *session.Welcome)
		go func() { welcomed <- d.welcome(hello("a")) }()
		<-time.After(time.Second)
		select {
		case w := <-welcomed:
			t.Fatalf("welcome before it is known what is settled: %+v", w)
		default:
		}
		close(release)
		if w := <-welcomed; w.Settled != 1 {
			t.Errorf("settled %d", w.Settled)
		}
		all := c.until(is[*session.Error])
		if e := all[len(all)-1].(*session.Error); e.Code != session.SessionTaken || e.Retryable {
			t.Errorf("%+v", e)
		}
	})
}

// With a full spool a frame is held and nothing more is allowed; when there is room all goes on in its order.
func TestB05NoCreditWhileTheSpoolIsFull(t *testing.T) {
	var mu sync.Mutex
	full := true
	s := &fakeStream{accept: func(context.Context, *event.Batch) error {
		mu.Lock()
		defer mu.Unlock()
		if full {
			return event.Problemf(event.SpoolFull, "the spool is full")
		}
		return nil
	}}
	inSession(t, s, func(t *testing.T, g *sessionGate, c *rawClient) {
		w := c.welcome(hello("a"))
		big := `"` + strings.Repeat("x", 60<<10) + `"`
		events := w.Credit/uint64(len(big)) + 1 // all that may be sent
		wrote := make(chan struct{})
		go func() {
			defer close(wrote)
			for i := range events {
				c.events(i+1, big)
			}
			c.send(&session.Fin{})
		}()
		for range 20 {
			f := c.frame()
			if slow, ok := f.(*session.SlowDown); !ok || slow.Code != "spool_full" || slow.Millis < 100 || slow.Millis > 1000 {
				t.Fatalf("%T%+v", f, f)
			}
		}
		if held := g.budget.Held(); held > 4*64<<10 {
			t.Errorf("%d bytes are held for one session", held)
		}
		mu.Lock()
		full = false
		mu.Unlock()
		all := c.until(is[*session.Fin])
		<-wrote
		if !slices.ContainsFunc(all, isAck(session.Durable, events)) {
			t.Errorf("%s", described(all))
		}
		if got := g.data(); len(got) != int(events) {
			t.Errorf("stored %d of %d events", len(got), events)
		}
	})
}

// Who sends without credit is at fault.
func TestCreditIsBinding(t *testing.T) {
	s := &fakeStream{accept: func(ctx context.Context, b *event.Batch) error {
		b.Reach(event.Accepted)
		if len(b.Events[0].Data) > 1000 { // and is not settled for long
			<-time.After(20 * time.Second)
		}
		return nil
	}, settings: Settings{Limits: Limits{Event: 2 << 20}}}
	inSession(t, s, func(t *testing.T, g *sessionGate, c *rawClient) {
		w := c.welcome(hello("a"))
		big := `"` + strings.Repeat("x", int(w.Credit)) + `"`
		wrote := make(chan struct{})
		go func() { defer close(wrote); c.events(1, big).events(2, "1") }()
		all := c.until(is[*session.Error])
		<-wrote
		if e := all[len(all)-1].(*session.Error); e.Code != session.CreditExceeded {
			t.Errorf("%+v", e)
		}
		if !slices.ContainsFunc(all, isAck(session.Durable, 1)) {
			t.Errorf("what came before has no outcome: %s", described(all))
		}
	})
}

// A length that was announced takes no memory, and nearly nothing of a frame none at all.
func TestAnnouncedEventsTakeNoMemory(t *testing.T) {
	inSession(t, &fakeStream{}, func(t *testing.T, g *sessionGate, c *rawClient) {
		c.welcome(hello("a"))
		if _, err := c.str.Write(session.AppendEventsHead(nil, session.EventsHead{First: 1, Count: 1, Framing: session.Lines}, 15<<20)); err != nil {
			t.Fatal(err)
		}
		io.WriteString(c.str, `"x`)
		<-time.After(time.Second)
		if held := g.budget.Held(); held != 0 {
			t.Errorf("for two bytes %d are held", held)
		}
		io.WriteString(c.str, strings.Repeat("x", early))
		<-time.After(time.Second)
		if held := g.budget.Held(); held == 0 || held > trusted {
			t.Errorf("%d bytes are held", held)
		}
		all := c.until(is[*session.Error]) // it does not go on
		if e := all[len(all)-1].(*session.Error); e.Code != "request_timeout" || !e.Retryable {
			t.Errorf("%+v", e)
		}
		if got := g.data(); len(got) > 0 {
			t.Errorf("stored %q", got)
		}
	})
}

func TestSessionsAreRefused(t *testing.T) {
	whole := func(f session.Frame) []byte { return f.Append(nil) }
	events := func(h session.EventsHead, body string) []byte {
		return append(session.AppendEventsHead(whole(hello("a")), h, len(body)), body...)
	}
	for name, c := range map[string]struct {
		bytes     []byte
		code      string
		retryable bool
	}{
		"no hello":           {whole(&session.Fin{}), session.UnknownFrame, false},
		"another version":    {whole(&session.Hello{Version: 2}), session.UnsupportedVersion, false},
		"no frame":           {[]byte{1, 3, 1, 200, 200}, "bad_framing", false},
		"endless varint":     {[]byte(strings.Repeat("\xff", 20)), "bad_framing", false},
		"large hello":        {[]byte{1, 0xff, 0xff, 0xff, 0x7f}, "bad_framing", false},
		"no such stream":     {whole(&session.Hello{Version: 1, Stream: "x"}), "unknown_stream", false},
		"stream with a path": {whole(&session.Hello{Version: 1, Stream: "s/events?dry_run=true&x"}), "bad_parameter", false},
		"no such level":      {whole(&session.Hello{Version: 1, Stream: "s", Level: 9}), "bad_parameter", false},
		"bad name":           {whole(&session.Hello{Version: 1, Stream: "s", Session: "a b"}), "bad_parameter", false},
		"long name":          {whole(&session.Hello{Version: 1, Stream: "s", Session: strings.Repeat("a", 65)}), "bad_parameter", false},
		"field of a request": {whole(&session.Hello{Version: 1, Stream: "s", Fields: []session.Field{{Name: "Content-Type", Value: "text/plain"}}}), "bad_parameter", false},
		"hello twice":        {append(whole(hello("a")), whole(hello("a"))...), session.UnknownFrame, false},
		"frame of a gateway": {append(whole(hello("a")), whole(&session.Ack{})...), session.UnknownFrame, false},
		"unknown frame":      {append(whole(hello("a")), 99, 0), session.UnknownFrame, false},
		"end without FIN":    {whole(hello("a")), "incomplete_body", true},
		"cut off":            {events(session.EventsHead{First: 1, Count: 1, Framing: session.Lines}, "1\n")[:len(whole(hello("a")))+7], "incomplete_body", true},
		"no events":          {events(session.EventsHead{First: 1, Framing: session.Lines}, ""), "bad_framing", false},
		"wrong count":        {events(session.EventsHead{First: 1, Count: 3, Framing: session.Lines}, "1\n2\n"), "bad_framing", false},
		"from zero":          {events(session.EventsHead{First: 0, Count: 1, Framing: session.Lines}, "1\n"), "bad_framing", false},
		"no such framing":    {events(session.EventsHead{First: 1, Count: 1, Framing: 9}, "1\n"), "unsupported_media_type", false},
		"no such coding":     {events(session.EventsHead{First: 1, Count: 1, Coding: 9}, "1\n"), "unsupported_coding", false},
		"bad prefix":         {events(session.EventsHead{First: 1, Count: 1}, "\x05a"), "bad_framing", false},
		"a gap": {append(events(session.EventsHead{First: 1, Count: 1, Framing: session.Lines}, "1\n"),
			append(session.AppendEventsHead(nil, session.EventsHead{First: 3, Count: 1, Framing: session.Lines}, 2), "3\n"...)...), session.BadSequence, false},
		"large frame": {append(whole(hello("a")), session.AppendEventsHead(nil, session.EventsHead{First: 1, Count: 1}, 17<<20)...), "body_too_large", false},
	} {
		t.Run(name, func(t *testing.T) {
			inSession(t, &fakeStream{}, func(t *testing.T, g *sessionGate, cl *rawClient) {
				if _, err := cl.str.Write(c.bytes); err != nil {
					t.Fatal(err)
				}
				cl.str.Close()
				cl.t = t
				all := cl.until(is[*session.Error])
				if e := all[len(all)-1].(*session.Error); e.Code != c.code || e.Retryable != c.retryable || e.Detail == "" {
					t.Errorf("%+v", e)
				}
				if f := cl.frame(); f != nil {
					t.Errorf("behind ERROR: %T%+v", f, f)
				}
			})
		})
	}
}

// C07 of sessions: what HTTP refuses is refused here with the same code, in each framing and coding.
func TestC07SessionsHaveTheSameLimits(t *testing.T) {
	s := &fakeStream{settings: Settings{Limits: Limits{Body: 16_000, Inflated: 64_000, Event: 1_000, Events: 200, Depth: 8}}}
	prefix := func(events ...string) (body string) {
		for _, e := range events {
			body += string(wire.AppendEvent(nil, []byte(e), wire.Prefixed))
		}
		return body
	}
	for name, c := range map[string]struct {
		h      session.EventsHead
		body   string
		code   string // of ERROR, or of REJECT for event 2
		stored []string
	}{
		"lines":           {session.EventsHead{Count: 2, Framing: session.Lines}, "1\n2\n", "", []string{"1", "2"}},
		"JSON":            {session.EventsHead{Count: 2, Framing: session.JSON}, prefix("{\n}", "2"), "", []string{"{\n}", "2"}},
		"opaque":          {session.EventsHead{Count: 2, Framing: session.Opaque}, prefix("{", "\xff"), "", []string{"{", "\xff"}},
		"gzip":            {session.EventsHead{Count: 2, Framing: session.Lines, Coding: session.Gzip}, gzipped("1\n2\n"), "", []string{"1", "2"}},
		"zstd":            {session.EventsHead{Count: 2, Framing: session.Lines, Coding: session.Zstd}, zstded("1\n2\n"), "", []string{"1", "2"}},
		"deflate":         {session.EventsHead{Count: 2, Framing: session.Lines, Coding: session.Deflate}, zlibbed("1\n2\n"), "", []string{"1", "2"}},
		"br":              {session.EventsHead{Count: 2, Framing: session.Lines, Coding: session.Brotli}, brotlied("1\n2\n"), "", []string{"1", "2"}},
		"snappy":          {session.EventsHead{Count: 2, Framing: session.Lines, Coding: session.Snappy}, snapped("1\n2\n"), "", []string{"1", "2"}},
		"malformed":       {session.EventsHead{Count: 2, Framing: session.JSON}, prefix("1", "{"), "malformed_json", []string{"1"}},
		"two in one":      {session.EventsHead{Count: 2, Framing: session.JSON}, prefix("1", "1 2"), "trailing_data", []string{"1"}},
		"invalid":         {session.EventsHead{Count: 2, Framing: session.JSON}, prefix("1", "\"\xff\""), "invalid_utf8", []string{"1"}},
		"deep":            {session.EventsHead{Count: 2, Framing: session.JSON}, prefix("1", strings.Repeat("[", 12)+strings.Repeat("]", 12)), "too_deep", []string{"1"}},
		"large event":     {session.EventsHead{Count: 2, Framing: session.Opaque}, prefix("1", strings.Repeat("a", 2_000)), "event_too_large", []string{"1"}},
		"large frame":     {session.EventsHead{Count: 1, Framing: session.Lines}, strings.Repeat("1", 17_000) + "\n", "body_too_large", nil},
		"many events":     {session.EventsHead{Count: 300, Framing: session.Lines}, strings.Repeat("1\n", 300), "too_many_events", nil},
		"bomb":            {session.EventsHead{Count: 1 << 20, Framing: session.Lines, Coding: session.Gzip}, gzipped(strings.Repeat("1\n", 1<<20)), "inflated_too_large", nil},
		"bad coding":      {session.EventsHead{Count: 1, Coding: session.Gzip}, "nonsense", "bad_gzip", nil},
		"broken off bomb": {session.EventsHead{Count: 1, Framing: session.Lines, Coding: session.Zstd}, "\x28\xb5\x2f\xfd\x04", "bad_zstd", nil},
	} {
		t.Run(name, func(t *testing.T) {
			awake(t, s, func(t *testing.T, g *sessionGate, cl *rawClient) {
				cl.t = t
				cl.welcome(hello(strings.ReplaceAll(name, " ", "-")))
				c.h.First = 1
				if _, err := cl.str.Write(append(session.AppendEventsHead(nil, c.h, len(c.body)), c.body...)); err != nil {
					t.Fatal(err)
				}
				cl.send(&session.Fin{})
				all := cl.until(func(f session.Frame) bool { return is[*session.Error](f) || is[*session.Fin](f) })
				code := ""
				for _, f := range all {
					switch f := f.(type) {
					case *session.Error:
						code = f.Code
					case *session.Reject:
						if code = f.Code; f.Seq != 2 {
							t.Errorf("%+v", f)
						}
					}
				}
				if got := g.data(); code != c.code || !slices.Equal(got, c.stored) {
					t.Errorf("got %q, stored %q", code, got)
				}
			})
		})
	}
}

// At a stop the client learns what was taken, and gets its outcome.
func TestSessionsDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := &fakeStream{accept: func(_ context.Context, b *event.Batch) error {
			b.Reach(event.Accepted)
			<-release
			return nil
		}}
		g := serveSessions(t, s)
		c := g.dial()
		defer c.close()
		c.welcome(hello("a"))
		c.events(1, "1", "2")
		c.until(isAck(session.Accepted, 2))
		stopped := make(chan struct{})
		go func() { defer close(stopped); g.end() }()
		if away := c.until(is[*session.GoAway]); away[len(away)-1].(*session.GoAway).Last != 2 {
			t.Errorf("%s", described(away))
		}
		c.events(3, "3") // too late
		close(release)
		all := c.until(is[*session.Fin])
		if !slices.ContainsFunc(all, isAck(session.Durable, 2)) || !slices.ContainsFunc(all, is[*session.Result]) {
			t.Errorf("%s", described(all))
		}
		<-stopped
		if got := g.data(); !slices.Equal(got, []string{"1", "2"}) {
			t.Errorf("stored %q", got)
		}
	})
}

// Of an outcome that nobody will know nothing is said but that the session is to be gone on with.
func TestLostOutcome(t *testing.T) {
	s := &fakeStream{accept: func(_ context.Context, b *event.Batch) error {
		b.Reach(event.Accepted)
		if string(b.Body) != "2\n" {
			return nil
		}
		p := &event.Problem{Code: event.AckTimeout, Stored: event.StoredUnknown, Detail: "?"}
		go b.Late(&event.Batch{}, p)
		return p
	}}
	inSession(t, s, func(t *testing.T, g *sessionGate, c *rawClient) {
		c.welcome(hello("a"))
		c.events(1, "1").events(2, "2").events(3, "3")
		all := c.until(is[*session.Error])
		if e := all[len(all)-1].(*session.Error); e.Code != "ack_timeout" || !e.Retryable {
			t.Errorf("%+v", e)
		}
		if slices.ContainsFunc(all, isAck(session.Durable, 2)) {
			t.Errorf("%s", described(all))
		}
		c.open()
		if w := c.welcome(hello("a")); w.Settled != 1 {
			t.Errorf("settled %d", w.Settled)
		}
	})
}

// What is remembered comes back from a log.
func TestSessionsAreKept(t *testing.T) {
	log := &memoryLog{}
	synctest.Test(t, func(t *testing.T) {
		g := serveSessions(t, &fakeStream{})
		g.sessions.Keep(log, true, time.Now())
		c := g.dial()
		c.welcome(hello("a"))
		c.events(1, "1", "{").events(3, "3")
		c.until(isAck(session.Durable, 3))
		c.close()
		g.end()
		if log.unflushed > 0 || len(log.records) != 2 {
			t.Errorf("%d records, %d of them not flushed", len(log.records), log.unflushed)
		}
	})
	again := &memoryLog{}
	synctest.Test(t, func(t *testing.T) {
		g := serveSessions(t, &fakeStream{})
		defer g.end()
		restore(g.sessions, log.records)
		g.sessions.Restore([]byte("\xff\xff"), time.Now()) // damage is no session
		if err := g.sessions.Snapshot(func(r []byte) error { again.Append(r); return nil }); err != nil {
			t.Fatal(err)
		}
		c := g.dial()
		defer c.close()
		if w := c.welcome(hello("a")); w.Settled != 3 {
			t.Errorf("settled %d", w.Settled)
		}
		if all := c.until(isAck(session.Durable, 3)); len(all) != 4 || all[0].(*session.Reject).Seq != 2 {
			t.Errorf("%s", described(all))
		}
	})
	if !slices.EqualFunc(again.records, log.records, slices.Equal) {
		t.Errorf("the snapshot has %q, the log %q", again.records, log.records)
	}
}

type memoryLog struct {
	records   [][]byte
	unflushed int
}

func (l *memoryLog) Append(r []byte) { l.records = append(l.records, slices.Clone(r)); l.unflushed++ }
func (l *memoryLog) Flush()          { l.unflushed = 0 }

// restore has sessions take over the records of an earlier process.
func restore(s *sessions, records [][]byte) {
	for _, r := range records {
		s.Restore(r, time.Now())
	}
}

// Sessions that nobody uses are forgotten when there are too many.
func TestSessionsAreForgotten(t *testing.T) {
	s := newSessions(t.Context(), nil, time.Second)
	for i := range mostSessions + 10 {
		s.stateOf(sessionKey{name: fmt.Sprint(i)}).settled = 1
	}
	if len(s.all) != mostSessions || s.old.Len() != mostSessions || s.stateOf(sessionKey{name: "5"}).settled != 0 || s.stateOf(sessionKey{name: "100"}).settled != 1 {
		t.Errorf("%d sessions", len(s.all))
	}
}
