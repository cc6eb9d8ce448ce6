package ingest

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/headgate-io/headgate/event"
)

// serveQUIC is serve with listeners for TLS and for QUIC, of which it returns the address.
func serveQUIC(t *testing.T, cfg Config, s *fakeStream, change ...func(*Deps)) (g *gate, at string) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg.TLS, cfg.TLSListen = secret(t), "127.0.0.1:0"
	cfg.QUIC = &QUICConfig{Conn: conn, TLS: cfg.TLS}
	return serve(t, cfg, s, change...), conn.LocalAddr().String()
}

// clientH3 returns a client that speaks HTTP/3 on a connection of its own.
func clientH3(t *testing.T) *http.Client {
	t.Helper()
	tr := &http3.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableCompression: true}
	t.Cleanup(func() { tr.Close() })
	return &http.Client{Transport: tr, Timeout: patience}
}

func clientH1(t *testing.T) *http.Client {
	t.Helper()
	tr := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: patience}
}

// until waits for a condition that other goroutines bring about.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Errorf("waited in vain: %s", what)
			return
		}
	}
}

// A header that is too large is refused with an answer; HTTP/1.1 cannot say the fields for browsers then.
func TestF59LargeHeadersOverHTTP3(t *testing.T) {
	_, at := serveQUIC(t, Config{}, &fakeStream{})
	for size, code := range map[int]any{readBuffer + 1: "headers_too_large", mostH3Header + 1: nil} {
		a := ask(t, clientH3(t), "https://"+at, exchange{target: events, body: "1", fields: []string{ndjson, "X-A: " + strings.Repeat("a", size)}})
		if a.Status != 431 || a.Doc["code"] != code {
			t.Errorf("%d bytes: got %d %v", size, a.Status, a.Doc)
		}
	}
}

// said is what must be the same of an answer, whatever it was asked over.
type said struct {
	Status int
	Fields http.Header
	Doc    map[string]any
}

func ask(t *testing.T, c *http.Client, base string, r exchange) said {
	t.Helper()
	var body io.Reader = strings.NewReader(r.body)
	if r.chunked {
		body = io.MultiReader(body)
	}
	method := r.method
	if method == "" {
		method = "POST"
	}
	req, err := http.NewRequest(method, base+r.target, body)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range r.fields {
		name, value, _ := strings.Cut(line, ": ")
		req.Header[http.CanonicalHeaderKey(name)] = append(req.Header[http.CanonicalHeaderKey(name)], value)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, r.target, err)
	}
	defer resp.Body.Close()
	doc, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	s := said{Status: resp.StatusCode, Fields: resp.Header}
	if len(doc) > 0 {
		if err := json.Unmarshal(doc, &s.Doc); err != nil {
			t.Fatalf("%d %q: %v", resp.StatusCode, doc, err)
		}
	}
	for _, name := range []string{"batch_id", "request_id", "observed"} { // made anew; of the last, see below
		if _, ok := s.Doc[name]; ok {
			s.Doc[name] = "some"
		}
	}
	for _, name := range []string{"Date", "Alt-Svc", "Connection", "Content-Length"} {
		s.Fields.Del(name)
	}
	for _, name := range []string{"X-Request-Id", "Retry-After", "Headgate-Idempotency-Window"} {
		if s.Fields.Get(name) != "" && !slices.Contains(r.fields, "X-Request-Id: mine") {
			s.Fields.Set(name, "some")
		}
	}
	return s
}

// exchange is a request and, as a check that the comparison compares something, the status of its answer.
type exchange struct {
	name, method, target, body string
	fields                     []string
	chunked                    bool
	status                     int
}

// exchanges are requests of every kind.
func exchanges() []exchange {
	const lines, one = "Content-Type: application/x-ndjson", "Content-Type: application/json"
	many := make([]string, maxFields+1)
	for i := range many {
		many[i] = "X-A: b"
	}
	return []exchange{
		{name: "lines", body: "1\n2\n", fields: []string{lines}, status: 200},
		{name: "chunked", body: "1\n2\n", fields: []string{lines}, chunked: true, status: 200},
		{name: "accepted", target: events + "?ack=accepted", body: "1\n", fields: []string{lines}, status: 202},
		{name: "level by field", body: "1\n", fields: []string{lines, "Headgate-Ack: delivered"}, status: 200},
		{name: "array", body: "[1,2,3]", fields: []string{one}, status: 200},
		{name: "nothing", body: "[]", fields: []string{one}, status: 200},
		{name: "no body", fields: []string{one}, status: 400},
		{name: "some bad", body: "1\n{\n", fields: []string{lines}, status: 207},
		{name: "all bad", body: "{\n", fields: []string{lines}, status: 400},
		{name: "strict", target: events + "?mode=strict", body: "1\n{\n", fields: []string{lines}, status: 422},
		{name: "strict, over a rate", target: events + "?mode=strict", body: `"rate"`, fields: []string{one}, status: 429},
		{name: "strict CloudEvent, over a rate", target: events + "?mode=strict", body: `"rate"`, fields: []string{one, "ce-specversion: 1.0", "ce-id: 1", "ce-source: /a", "ce-type: t"}, status: 429},
		{name: "dry run", target: events + "?dry_run=true", body: "1\n", fields: []string{lines, "Headgate-Key: k"}, status: 200},
		{name: "trailing data", body: "[1] 2", fields: []string{one}, status: 400},
		{name: "text", body: "a\nb\n", fields: []string{"Content-Type: text/plain; charset=utf-8"}, status: 200},
		{name: "prefixed", body: "\x01a\x02bc", fields: []string{"Content-Type: application/vnd.headgate.events"}, status: 200},
		{name: "prefixed, cut", body: "\x01a\x05bc", fields: []string{"Content-Type: application/vnd.headgate.events"}, status: 400},
		{name: "opaque", body: "\x00\xff", fields: []string{"Content-Type: application/octet-stream"}, status: 200},
		{name: "CloudEvent", body: `{"specversion":"1.0","id":"1","source":"/a","type":"t"}`, fields: []string{"Content-Type: application/cloudevents+json"}, status: 200},
		{name: "binary CloudEvent", body: "{}", fields: []string{one, "ce-specversion: 1.0", "ce-id: 1", "ce-source: /a", "ce-type: t"}, status: 200},
		{name: "no such type", body: "1", fields: []string{"Content-Type: text/weird"}, status: 415},
		{name: "two types", body: "1", fields: []string{one, lines}, status: 400},
		{name: "gzip", body: gzipped("1\n2\n"), fields: []string{lines, "Content-Encoding: gzip"}, status: 200},
		{name: "bad gzip", body: "nonsense", fields: []string{lines, "Content-Encoding: gzip"}, status: 400},
		{name: "no such coding", body: "1", fields: []string{lines, "Content-Encoding: rot13"}, status: 415},
		{name: "bomb", body: gzipped(strings.Repeat("1\n", 1<<20)), fields: []string{lines, "Content-Encoding: gzip"}, status: 413},
		{name: "large body", body: strings.Repeat("1\n", 9_000), fields: []string{lines}, status: 413},
		{name: "large body, chunked", body: strings.Repeat("1\n", 9_000), fields: []string{lines}, chunked: true, status: 413},
		{name: "large event", body: `"` + strings.Repeat("a", 2_000) + `"`, fields: []string{one}, status: 413},
		{name: "many events", body: "[" + strings.Repeat("1,", 200) + "1]", fields: []string{one}, status: 413},
		{name: "deep", body: strings.Repeat("[", 12) + strings.Repeat("]", 12), fields: []string{lines}, status: 422},
		{name: "no such stream", target: "/v1/streams/x/events", body: "1", fields: []string{one}, status: 404},
		{name: "no such path", target: "/v2", body: "1", fields: []string{one}, status: 404},
		{name: "no such method", method: "GET", status: 405},
		{name: "head of an answer", method: "HEAD", status: 405},
		{name: "long answer", body: strings.Repeat("\"long\"\n", 100), fields: []string{lines}, status: 422},
		{name: "no such parameter", target: events + "?a=b", body: "1", fields: []string{one}, status: 400},
		{name: "no such level", target: events + "?ack=now", body: "1", fields: []string{one}, status: 400},
		{name: "traced", body: "1", fields: []string{one, "X-Request-Id: mine", "Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "Tracestate: a=b", "Tracestate: c=d"}, status: 200},
		{name: "once", body: "1", fields: []string{one, "Idempotency-Key: k"}, status: 200},
		{name: "once, other", body: "2", fields: []string{one, "Idempotency-Key: k"}, status: 422},
		{name: "page", body: "1", fields: []string{one, "Origin: https://app.example.com"}, status: 200},
		{name: "page of another", body: "1", fields: []string{one, "Origin: https://evil.example.com"}, status: 200},
		{name: "preflight", method: "OPTIONS", fields: []string{"Origin: https://app.example.com", "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: ce-a"}, status: 204},
		{name: "preflight of another", method: "OPTIONS", fields: []string{"Origin: https://evil.example.com", "Access-Control-Request-Method: POST"}, status: 403},
		{name: "many fields", body: "1", fields: append(many, one), status: 431},
		{name: "refused by the stream", body: `"refuse"`, fields: []string{one}, status: 503},
		{name: "panic", body: `"panic"`, fields: []string{one}, status: 500},
	}
}

func exchangeStream() *fakeStream {
	return &fakeStream{settings: Settings{Limits: Limits{Body: 16_000, Inflated: 64_000, Event: 1_000, Events: 200, Depth: 8}},
		accept: func(_ context.Context, b *event.Batch) error {
			switch {
			case b.Trial:
				return nil
			case string(b.Body) == `"refuse"`:
				return event.Problemf(event.SpoolFull, "full")
			case string(b.Body) == `"rate"` && b.Strict:
				b.Reject(0, event.KeyRate, "slower")
				return event.Problemf(event.KeyRate, "too much of a key")
			case strings.HasPrefix(string(b.Body), `"long"`):
				for i := range b.Events {
					b.Reject(i, event.PluginRejected, strings.Repeat("why ", 100))
				}
				return nil
			case string(b.Body) == `"panic"`:
				panic("BUG: test")
			}
			return nil
		}}
}

// C07 of HTTP/3, and of everything else: each request gets the same answer over HTTP/1.1 and HTTP/3, does the same, and is
// counted the same.
func TestC07HTTP3AnswersAsHTTP1(t *testing.T) {
	cfg := Config{Origins: []string{"https://app.example.com"}}
	one, three := exchangeStream(), exchangeStream()
	g1, _ := serveQUIC(t, cfg, one)
	g3, at := serveQUIC(t, cfg, three)
	c1, c3 := clientH1(t), clientH3(t)
	for _, r := range exchanges() {
		if r.target == "" {
			r.target = events
		}
		t.Run(r.name, func(t *testing.T) {
			a1, a3 := ask(t, c1, "https://"+g1.secure, r), ask(t, c3, "https://"+at, r)
			if a1.Status != r.status {
				t.Errorf("HTTP/1.1: got %d %v, want %d", a1.Status, a1.Doc, r.status)
			}
			t1, _ := json.MarshalIndent(a1, "", " ")
			t3, _ := json.MarshalIndent(a3, "", " ")
			if string(t1) != string(t3) {
				t.Errorf("HTTP/1.1: %s\nHTTP/3: %s", t1, t3)
			}
			s1, s3 := one.take(), three.take()
			if !slices.Equal(s1, s3) {
				t.Errorf("HTTP/1.1 stored %+v\nHTTP/3 stored %+v", s1, s3)
			}
		})
	}
	if m1, m3 := counters(t, g1), counters(t, g3); len(m1) < 30 || !slices.Equal(m1, m3) {
		t.Errorf("HTTP/1.1 counted\n%s\nHTTP/3 counted\n%s", strings.Join(m1, "\n"), strings.Join(m3, "\n"))
	}
}

// counters are the metrics that count requests and events.
func counters(t *testing.T, g *gate) (all []string) {
	t.Helper()
	families, err := g.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			if m.Counter != nil {
				labels := ""
				for _, l := range m.Label {
					labels += " " + l.GetName() + "=" + l.GetValue()
				}
				all = append(all, fmt.Sprint(f.GetName(), labels, " ", m.Counter.GetValue()))
			}
		}
	}
	return all
}

// A body that does not end is stored by neither, and one that comes too slowly is refused.
func TestF38SlowAndCutBodiesOverHTTP3(t *testing.T) {
	s := &fakeStream{}
	_, at := serveQUIC(t, Config{ReadTimeout: 50 * time.Millisecond}, s)
	for _, announced := range []int64{-1, 100} {
		r, w := io.Pipe()
		go io.WriteString(w, "1\n")
		req, err := http.NewRequest("POST", "https://"+at+events, r)
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = announced
		req.Header.Set("Content-Type", "application/x-ndjson")
		resp, err := clientH3(t).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != 408 {
			t.Errorf("%d announced: %d", announced, resp.StatusCode)
		}
		resp.Body.Close()
		w.Close()
	}
	if all := s.data(); len(all) > 0 {
		t.Errorf("stored %q", all)
	}
}

// A stream that is reset in the middle of its body stores nothing.
func TestF39VanishingClientOverHTTP3StoresNothing(t *testing.T) {
	s := &fakeStream{}
	g, at := serveQUIC(t, Config{}, s)
	r, w := io.Pipe()
	req, err := http.NewRequest("POST", "https://"+at+events, r)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	go func() {
		io.WriteString(w, "1\n")
		until(t, "the body is read", func() bool { return g.budget.Held() > 0 })
		w.CloseWithError(errors.New("gone"))
	}()
	if resp, err := clientH3(t).Do(req); err == nil && resp.StatusCode != 400 {
		t.Errorf("answered %d", resp.StatusCode)
	}
	refused := func() bool {
		return slices.Contains(counters(t, g), "headgate_ingest_rejected_total code=incomplete_body stream=s 1")
	}
	until(t, "it is refused", refused)
	if all := s.data(); len(all) > 0 {
		t.Errorf("stored %q", all)
	}
}

// Alt-Svc is said under TLS, and only while HTTP/3 can be spoken.
func TestJ10AltSvcOnlyWhileUDPWorks(t *testing.T) {
	g, at := serveQUIC(t, Config{}, &fakeStream{})
	_, port, _ := net.SplitHostPort(at)
	alt := func(base string) string {
		t.Helper()
		resp, err := clientH1(t).Post(base+events, "application/x-ndjson", strings.NewReader("1\n"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.Header.Get("Alt-Svc")
	}
	if got := alt("https://" + g.secure); got != `h3=":`+port+`"; ma=86400` {
		t.Errorf("Alt-Svc %q", got)
	}
	if got := alt("http://" + g.addr); got != "" {
		t.Errorf("without TLS: %q", got)
	}
	g.Server.quic.door.Close() // as if the socket had failed
	until(t, "it is not advertised", func() bool { return g.Server.quic.edge.alt.Load() == nil })
	if got := alt("https://" + g.secure); got != "" {
		t.Errorf("without UDP: %q", got)
	}
	without, _ := serveTLS(t, Config{}, &fakeStream{})
	if got := alt("https://" + without.secure); got != "" {
		t.Errorf("without QUIC: %q", got)
	}
}

// Requests in flight are answered, later ones are refused so that they can be sent elsewhere.
func TestJ01ShutdownOfHTTP3(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	s := &fakeStream{accept: func(context.Context, *event.Batch) error {
		close(entered)
		<-release
		return nil
	}}
	g, at := serveQUIC(t, Config{}, s)
	conn, err := quic.DialAddr(t.Context(), at, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h3"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseWithError(0, "")
	client := (&http3.Transport{}).NewClientConn(conn)
	post := func(body string) (*http.Response, error) {
		req, _ := http.NewRequest("POST", "https://"+at+events, strings.NewReader(body))
		req.Header.Set("Content-Type", "application/x-ndjson")
		return client.RoundTrip(req)
	}
	answered := make(chan int, 1)
	go func() {
		resp, err := post("1\n")
		if err != nil {
			t.Error(err)
			answered <- 0
			return
		}
		answered <- resp.StatusCode
	}()
	<-entered
	stopped := make(chan error, 1)
	go func() { stopped <- g.Server.Shutdown(context.Background()) }()
	refused := func() bool { // until the GOAWAY is there or the stream is rejected
		str, err := conn.OpenStream()
		if err != nil {
			return false
		}
		str.Write([]byte{1, 0}) // a HEADERS frame without anything
		_, err = io.ReadAll(str)
		var reset *quic.StreamError
		return errors.As(err, &reset) && reset.ErrorCode == quic.StreamErrorCode(http3.ErrCodeRequestRejected)
	}
	until(t, "later requests are rejected", refused)
	close(release)
	if status := <-answered; status != 200 {
		t.Errorf("the running request got %d", status)
	}
	if err := <-stopped; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if all := s.data(); !slices.Equal(all, []string{"1"}) {
		t.Errorf("stored %q", all)
	}
}

// A first flight is never taken as data: nothing can be sent before the handshake is over.
func TestF50J02EarlyDataIsNotUsed(t *testing.T) {
	_, at := serveQUIC(t, Config{}, &fakeStream{})
	secure := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h3"}, ServerName: "localhost", ClientSessionCache: tls.NewLRUClientSessionCache(1)}
	for range 2 { // the second time with a ticket
		conn, err := quic.DialAddrEarly(t.Context(), at, secure, nil)
		if err != nil {
			t.Fatal(err)
		}
		<-conn.HandshakeComplete()
		if conn.ConnectionState().Used0RTT {
			t.Error("0-RTT was used")
		}
		str, err := conn.AcceptUniStream(t.Context()) // by then the ticket is there
		if err != nil {
			t.Fatal(err)
		}
		str.Read(make([]byte, 1))
		conn.CloseWithError(0, "")
	}
}

// Connections over QUIC and TCP are counted together.
func TestConnectionLimitsAreShared(t *testing.T) {
	g, at := serveQUIC(t, Config{MaxConnectionsPerAddress: 2}, &fakeStream{})
	one := g.dial()
	one.send(request11(events, "1\n", ndjson)).answer().want(t, 200, "")
	secure := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h3"}}
	conn, err := quic.DialAddr(t.Context(), at, secure, nil)
	if err != nil {
		t.Fatal(err)
	}
	var refused *quic.TransportError
	if _, err := quic.DialAddr(t.Context(), at, secure, nil); !errors.As(err, &refused) || refused.ErrorCode != quic.ConnectionRefused {
		t.Errorf("a third connection: %v", err)
	}
	g.dial().answer().want(t, 429, event.CallerRate)
	conn.CloseWithError(0, "")
	until(t, "a closed connection is not counted", func() bool { return g.Server.open.count() == 1 })
	g.post("2\n", ndjson).want(t, 200, "")
}
