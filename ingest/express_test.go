package ingest

import (
	"context"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/race"
)

// ownWords are what no two answers have in common.
var ownWords = regexp.MustCompile(`Date: [^\r]*|[0-9A-Z]{26}|Retry-After: [0-9]+|Headgate-Idempotency-Window: [0-9]+`)

// exchange sends text, and no more, and returns all that is answered.
func (g *gate) exchange(text string) string {
	g.t.Helper()
	c := g.dial().send(text)
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		g.t.Fatal(err)
	}
	all, _ := io.ReadAll(c.r) // an error: reset behind what is there
	return ownWords.ReplaceAllString(string(all), "-")
}

// F41: express answers what fasthttp would answer, to the byte, and stores the same, whatever comes.
func TestF41ExpressIsNoSecondOpinion(t *testing.T) {
	cors := Config{Origins: []string{"https://a.example"}}
	fast, slow := serve(t, cors, &fakeStream{}), serve(t, Config{Origins: cors.Origins, MaxRequestsPerConnection: 1 << 30}, &fakeStream{})
	if fast.fast == nil || slow.fast != nil {
		t.Fatal("the two servers do not differ")
	}
	compare := func(text string) {
		t.Helper()
		got, want := fast.exchange(text), slow.exchange(text)
		if got != want {
			t.Errorf("%q\n got %q\nwant %q", text, got, want)
		}
		if got, want := fast.data(), slow.data(); !slices.Equal(got, want) {
			t.Errorf("%q stored %q, want %q", text, got, want)
		}
	}
	plain := request11(events, "1\n2\n", ndjson)
	for _, text := range []string{
		plain, plain + plain, plain + plain[:40], plain + chunked(events, ndjson) + "2\r\n1\n\r\n0\r\n\r\n" + plain,
		request11(events+"?ack=accepted", "{}", "Content-Type: application/json", "Connection: Keep-Alive", "X-Request-Id: mine"),
		request11(events, "1\n", ndjson, "Connection: close") + plain,
		request11(events, "1\n", ndjson, "Connection: keep-alive, close") + plain,
		request11(events, "1\n", ndjson, "Expect: 100-continue"),
		request11(events, "1\n", ndjson, "Origin: https://a.example"),
		request11(events, "1\n", ndjson, "Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "Tracestate: a=b\t", "Tracestate: c=d"),
		request11(events, "1\n", ndjson, "Host: y"), request11(events, "1\n", ndjson, "content-length: 2"),
		request11(events, "nonsense\n1\n", ndjson), request11(events, "nonsense\n", ndjson), request11(events+"?mode=strict", "nonsense\n1\n", ndjson),
		request11(events+"?dry_run=true", "1\n", ndjson), request11(events+"?ack=never", "1\n", ndjson), request11(events+"#a", "1\n", ndjson),
		request11(events, "1\n", "Content-Type: text/html"), request11(events, "1\n"), request11(events, "", ndjson),
		request11("/v1/streams/none/events", "1\n", ndjson), request11("/v1/streams/s/other", "1\n", ndjson), request11("/v1/streams/panics/events", "1\n", ndjson),
		request11(events, strings.Repeat("1\n", 5<<10), ndjson), request11(events, strings.Repeat("1\n", 50<<10), ndjson),
		request11(events, "1\n", append(slices.Repeat([]string{"A: b"}, maxFields), ndjson)...), request11(events, "1\n", append(slices.Repeat([]string{"A: b"}, maxFields-3), ndjson)...),
		request11(events, "1\n", ndjson, `Idempotency-Key: "a"`), request11(events, "1\n", ndjson, `Idempotency-Key: "a"`),
		strings.Replace(plain, "Host: x", "Host: x:80", 1), strings.Replace(plain, "Host: x", "Host: x:y", 1), strings.Replace(plain, "Host: x", "Host: [::1]:80", 1),
		strings.Replace(plain, "POST", "GET", 1), strings.Replace(plain, "POST", "OPTIONS", 1), strings.Replace(plain, "POST", "HEAD", 1),
	} {
		compare(text)
	}
	for _, host := range []string{"", ":", "x:", ":80", "x:0", "x:00080", "x:65536", "x:99999999999999999999", ".", "..", "a..b", "a.", "-", "_", "-a-", "256.1.1.1", "1.2.3.4.5", "0x7f.1", "x:80:80", "u@x", "x/y", "x, y"} {
		compare(strings.Replace(plain, "Host: x", "Host: "+host, 1))
	}
	for _, target := range []string{events + "?", events + "?a=%zz", events + "%", events + "%2f", events + "?a=\\|^\"<>{}`", "/v1/streams/%73/events", "/v1/streams/../streams/s/events", "/v1/streams//events", "/v1/streams/s/events/", "/v1/streams/s/events;a=b"} {
		compare(request11(target, "1\n", ndjson))
	}
	for _, field := range []string{"Proxy-Connection: close", "Keep-Alive: timeout=0, max=0", "Connection: ", "Connection: keep-alive\r\nConnection: keep-alive", "Connection: keep-alive\r\nConnection: close", "Cookie: a=b; c", "Content-Encoding: identity", "Headgate-Verdict: {}",
		"Content-Type: application/json", "User-Agent:", "X_y: z", "Http2-Settings: a", "Te: trailers", "Content-Range: bytes 0-1/2", "X-Http-Method-Override: GET", "Date: now", "Authorization: Bearer a", "Origin:", "Idempotency-Key: ", "Range: bytes=0-0", "If-Match: *"} {
		compare(strings.Replace(plain, "\r\n\r\n", "\r\n"+field+"\r\n\r\n", 1) + plain)
	}
	for size := readBuffer - 3; size <= readBuffer+3; size++ { // of a request
		head := len(request11(events, strings.Repeat(" ", 10_000), ndjson)) - 10_000
		compare(request11(events, strings.Repeat(" ", size-head-2)+"1\n", ndjson))
	}
	// Everything that is one change away from what is plain.
	head := strings.Index(plain, "\r\n\r\n") + 4
	for at := range head {
		for _, part := range []string{" ", "\r", "\n", ":", "\x00", "\xe9", "0", "/"} {
			compare(plain[:at] + part + plain[at:])
		}
		compare(plain[:at] + plain[at+1:])
		if strings.HasSuffix(plain[:at], "\r\n") {
			for _, line := range []string{" ", "Host: x", "Content-Length: 4", "Content-Length: 3", "Transfer-Encoding: chunked", "Transfer-Encoding: identity", "Expect: 100-continue", "Trailer: a", "Upgrade: b", "A"} {
				compare(plain[:at] + line + "\r\n" + plain[at:])
			}
		}
	}
}

// waits tells that express has answered the last request of the one connection.
func waits(g *gate) bool {
	return len(g.open.those(func(c *conn) bool { return c.express.state.Load() == stateIdle })) == 1
}

func TestExpressTakesPlainRequestsAgainBehindOthers(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{})
	c := g.dial()
	for i, text := range []string{
		request11(events, "1\n", ndjson), chunked(events, ndjson) + "2\r\n2\n\r\n0\r\n\r\n", request11(events, "3\n", ndjson),
		request11(events, "4\n", ndjson)[:10], request11(events, "4\n", ndjson)[10:], request11(events, "5\n", ndjson),
		request11(events, "6\n", ndjson) + request11(events, "7\n", ndjson), "", request11(events, "8\n", ndjson),
	} {
		if text != "" {
			c.send(text)
		}
		if i == 3 { // half a request
			g.until(func() bool {
				return len(g.open.those(func(c *conn) bool { return c.express.state.Load() == stateFasthttp })) == 1
			})
			continue
		}
		c.answer().want(t, 200, "")
		if plain := i != 1 && i != 4 && i != 6 && i != 7; plain {
			g.until(func() bool { return waits(g) })
		} else if waits(g) {
			t.Errorf("request %d: express took it", i)
		}
	}
	if got := g.data(); !slices.Equal(got, []string{"1", "2", "3", "4", "5", "6", "7", "8"}) {
		t.Errorf("stored %q", got)
	}
}

func TestExpressSeesWhatComesWhileItAnswers(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	s := &fakeStream{accept: func(context.Context, *event.Batch) error { entered <- struct{}{}; <-release; return nil }}
	g := serve(t, Config{ReadTimeout: 10 * patience, IdleTimeout: 10 * patience}, s)
	c := g.dial().send(request11(events, "1\n", ndjson))
	for range 20 {
		<-entered
		c.send(request11(events, "2\n", ndjson))
		release <- struct{}{}
		c.answer().want(t, 200, "")
	}
	<-entered
	close(release)
	c.answer().want(t, 200, "")
	g.until(func() bool { return waits(g) })
}

// An idle time that is shorter than that of a header holds behind the first answer, too.
func TestExpressEndsIdleConnections(t *testing.T) {
	g := serve(t, Config{ReadTimeout: 10 * patience, IdleTimeout: 50 * time.Millisecond}, quietStream())
	c := g.dial().send(request11(events, "1\n", ndjson))
	c.answer().want(t, 200, "")
	c.closed()
}

// A connection that waits for its next request does not hold up who stops the server, and one with a request is answered first.
func TestExpressStops(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	s := &fakeStream{accept: func(context.Context, *event.Batch) error { entered <- struct{}{}; <-release; return nil }}
	g := serve(t, Config{}, s)
	idle, busy, closing := g.dial(), g.dial(), g.dial()
	for _, c := range []*client{idle, busy, closing} {
		c.send(request11(events, "1\n", ndjson))
		<-entered
		release <- struct{}{}
		c.answer().want(t, 200, "")
	}
	g.until(func() bool {
		return len(g.open.those(func(c *conn) bool { return c.express.state.Load() == stateIdle })) == 3
	})
	busy.send(request11(events, "2\n", ndjson))
	<-entered
	closing.send(request11(events, "2\n", ndjson))
	<-entered
	for _, c := range g.open.those(func(c *conn) bool { return c.RemoteAddr().String() == closing.LocalAddr().String() }) {
		c.Close() // as fasthttp does with those that it takes for idle
	}
	g.fast.stop(g.open)
	idle.closed()
	close(release)
	for _, c := range []*client{busy, closing} {
		if r := c.answer().want(t, 200, ""); !r.Close {
			t.Error("the answer does not say that it is the last")
		}
		c.closed()
	}
}

// A request that does not end holds up the end of its own connection, and of no other.
func TestExpressDropsTheOthers(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	s := &fakeStream{accept: func(context.Context, *event.Batch) error { entered <- struct{}{}; <-release; return nil }}
	g := serve(t, Config{ReadTimeout: 10 * patience, IdleTimeout: 10 * patience}, s)
	for range 4 {
		g.dial().send(request11(events, "1\n", ndjson))
		<-entered
	}
	others := []*client{g.dial(), g.dial(), g.dial(), g.dial()}
	g.until(func() bool { return g.open.count() == 8 })
	dropped := make(chan struct{})
	go func() { defer close(dropped); g.drop() }()
	for _, c := range others {
		c.closed()
	}
	close(release)
	<-dropped
	g.until(func() bool { return g.open.count() == 0 })
}

func TestExpressSurvivesAPanic(t *testing.T) {
	first := true
	g := serve(t, Config{}, &fakeStream{accept: func(context.Context, *event.Batch) error {
		if first {
			first = false
			panic("BUG: test")
		}
		return nil
	}})
	c := g.dial().send(request11(events, "1\n", ndjson, "X-Request-Id: mine"))
	if r := c.answer().want(t, 500, event.Internal); !r.Close || r.Header.Get("X-Request-Id") != "mine" {
		t.Errorf("header %v", r.Header)
	}
	c.closed()
	g.dial().send(request11(events, "1\n", ndjson)).answer().want(t, 200, "")
}

// What one event costs between socket and stream: two texts that outlive it.
func TestExpressAllocatesLittle(t *testing.T) {
	if race.Enabled {
		t.Skip("sync.Pool forgets at random")
	}
	server, err := New(Config{}, fakeGate{"s": quietStream()}, Deps{})
	if err != nil {
		t.Fatal(err)
	}
	client := &endless{request: []byte(request11(events+"?ack=accepted", "{}", "Content-Type: application/json"))}
	c := newConn(client, newRoster(&server.cfg), nil)
	c.useExpress(server.fast)
	left := 0
	client.left = func() bool { left--; return left >= 0 }
	each := testing.AllocsPerRun(100, func() {
		left = 1
		c.express.state.Store(stateFasthttp)
		if err := server.fast.run(c); err == nil {
			t.Fatal("a request went to fasthttp")
		}
	})
	if each > 3 {
		t.Errorf("%v allocations a request", each)
	}
}
