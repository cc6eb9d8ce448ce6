package ingest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/budget"
)

// stored is an event as the fake stream kept it.
type stored struct {
	data, key, producer, trace string
	hasKey                     bool
	span                       event.Span
	ack                        event.Level
	id, attrs                  string // attributes as name=value, a newline behind each
}

// fakeStream keeps what it accepts, unless accept says otherwise.
type fakeStream struct {
	settings Settings
	accept   func(ctx context.Context, b *event.Batch) error // called before anything is kept

	mu     sync.Mutex
	events []stored
}

func (s *fakeStream) Settings() *Settings { return &s.settings }

func (s *fakeStream) Accept(ctx context.Context, b *event.Batch) error {
	if s.accept != nil {
		if err := s.accept(ctx, b); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range b.Events {
		if e := &b.Events[i]; e.Verdict == event.Keep {
			s.events = append(s.events, stored{string(e.Data), string(b.Key), string(b.Producer), string(b.TraceParent), b.HasKey,
				e.Fields[event.FieldKey], b.Ack, string(e.ID), attrsText(e.Attrs)})
		}
	}
	return nil
}

func attrsText(attrs []event.Attr) (text string) {
	for _, a := range attrs {
		text += string(a.Name) + "=" + string(a.Value) + "\n"
	}
	return text
}

// data returns the stored events, and forgets them.
func (s *fakeStream) data() (all []string) {
	for _, e := range s.take() {
		all = append(all, e.data)
	}
	return all
}

func (s *fakeStream) take() []stored {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.events
	s.events = nil
	return all
}

// fakeGate knows its streams and no other, and panics when it is asked to.
type fakeGate map[string]*fakeStream

func (g fakeGate) Open(name string) (Stream, error) {
	if name == "panics" {
		panic("BUG: test")
	}
	if s := g[name]; s != nil {
		return s, nil
	}
	return nil, event.Problemf(event.UnknownStream, "no stream %q", name)
}

// gate is a running server with the one stream s.
type gate struct {
	*Server
	*fakeStream
	t       *testing.T
	addr    string
	secure  string // address of the listener with TLS
	budget  *budget.Budget
	metrics *prometheus.Registry
	ran     chan error
}

func serve(t *testing.T, cfg Config, s *fakeStream, change ...func(*Deps)) *gate {
	t.Helper()
	g := &gate{fakeStream: s, t: t, budget: budget.New(64 << 20), metrics: prometheus.NewRegistry(), ran: make(chan error, 1)}
	orDefault(&cfg.Listen, "127.0.0.1:0")
	deps := Deps{Log: slog.New(slog.DiscardHandler), Metrics: g.metrics, Budget: g.budget}
	for _, c := range change {
		c(&deps)
	}
	server, err := New(cfg, fakeGate{"s": s}, deps)
	if err != nil {
		t.Fatal(err)
	}
	addr, err := server.Listen()
	if err != nil {
		t.Fatal(err)
	}
	g.Server = server
	if addr.Plain != nil {
		g.addr = addr.Plain.String()
	}
	if addr.TLS != nil {
		g.secure = addr.TLS.String()
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { g.ran <- server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-g.ran; err != nil {
			t.Errorf("Run: %v", err)
		}
		if held := g.budget.Held(); held != 0 {
			t.Errorf("%d bytes of the budget are still reserved", held)
		}
	})
	return g
}

// client is one raw connection.
type client struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

// patience bounds how long a test waits for what must come; it is no assertion about speed.
const patience = time.Minute

func (g *gate) dial() *client { g.t.Helper(); return g.dialAt(g.addr) }

func (g *gate) dialAt(addr string) *client {
	g.t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		g.t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(patience))
	g.t.Cleanup(func() { c.Close() })
	return &client{g.t, c, bufio.NewReader(c)}
}

func (c *client) send(text string) *client {
	c.t.Helper()
	if _, err := io.WriteString(c.Conn, text); err != nil {
		c.t.Fatal(err)
	}
	return c
}

// result is an answer with its body read and decoded.
type result struct {
	*http.Response
	body string
	doc  document
}

// document has the members of every answer.
type document struct {
	Stream, Ack, Code, Detail, Scope, Stored, RequestID string
	BatchID                                             string `json:"batch_id"`
	Accepted, Filtered, Rejected, Status                int
	Duplicates, Deadlettered                            int
	Retryable                                           bool
	Limit, Observed                                     int64
	Errors                                              []eventError
	Truncated                                           bool `json:"errors_truncated"`
}

func (c *client) answer() result {
	c.t.Helper()
	res, err := http.ReadResponse(c.r, nil)
	if err != nil {
		c.t.Fatalf("read answer: %v", err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatalf("read answer: %v", err)
	}
	r := result{Response: res, body: string(body)}
	if err := json.Unmarshal(body, &r.doc); err != nil {
		c.t.Fatalf("answer %d is no JSON: %q", res.StatusCode, body)
	}
	problem := res.Header.Get("Content-Type") == "application/problem+json"
	if problem != (res.StatusCode >= 300) || problem && r.doc.Status != res.StatusCode {
		c.t.Errorf("answer %d has Content-Type %q and %s", res.StatusCode, res.Header.Get("Content-Type"), body)
	}
	return r
}

// closed waits until the server closes the connection.
func (c *client) closed() {
	c.t.Helper()
	if n, err := c.r.Read(make([]byte, 1)); n != 0 || errors.Is(err, errTimeout(err)) {
		c.t.Errorf("the connection was not closed: read %d bytes, %v", n, err)
	}
}

// errTimeout returns err when it is a timeout.
func errTimeout(err error) error {
	var e net.Error
	if errors.As(err, &e) && e.Timeout() {
		return err
	}
	return errors.New("no timeout")
}

const ndjson = "Content-Type: application/x-ndjson"

// request writes a request with a Content-Length; header lines come without their ends.
func request11(target, body string, header ...string) string {
	lines := append([]string{"POST " + target + " HTTP/1.1", "Host: x", fmt.Sprintf("Content-Length: %d", len(body))}, header...)
	return strings.Join(lines, "\r\n") + "\r\n\r\n" + body
}

const events = "/v1/streams/s/events"

// post sends one request on a connection of its own.
func (g *gate) post(body string, header ...string) result {
	g.t.Helper()
	return g.dial().send(request11(events, body, header...)).answer()
}

func (r result) want(t *testing.T, status int, code event.Code) result {
	t.Helper()
	if r.StatusCode != status || r.doc.Code != string(code) {
		t.Errorf("got %d %s, want %d %s", r.StatusCode, r.body, status, code)
	}
	return r
}

func unlimited() *budget.Budget { return budget.New(1 << 40) }

// quietStream keeps nothing: it calls every event filtered.
func quietStream() *fakeStream {
	return &fakeStream{accept: func(_ context.Context, b *event.Batch) error {
		for i := range b.Events {
			b.Events[i].Verdict = event.Filtered
		}
		return nil
	}}
}
