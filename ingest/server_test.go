package ingest

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/headgate-io/headgate/event"
)

// F42: a header has at most 64 fields and 16 KiB; one that goes on and on is not read on.
func TestF42HeaderFloods(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{})
	fields := func(n int) []string { return append(slices.Repeat([]string{"A: b"}, n-3), ndjson) } // beside Host and Content-Length
	size := func(n int) string {
		text := request11(events, "1\n", ndjson, "A: ")
		return request11(events, "1\n", ndjson, "A: "+strings.Repeat("x", n-len(text)+len("1\n")))
	}
	g.post("1\n", fields(maxFields)...).want(t, 200, "")
	g.post("1\n", fields(maxFields+1)...).want(t, 431, event.HeadersTooLarge)
	g.dial().send(size(readBuffer)).answer().want(t, 200, "")
	for _, text := range []string{size(readBuffer + 1), "POST /" + strings.Repeat("x", readBuffer) + " HTTP/1.1\r\nHost: x\r\n\r\n",
		"POST " + events + " HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("A: b\r\n", readBuffer), strings.Repeat("x", 2*readBuffer)} {
		c := g.dial().send(text)
		if r := c.answer().want(t, 431, event.HeadersTooLarge); !r.Close {
			t.Error("the connection stays open")
		}
		c.closed()
	}
	if got := g.data(); !slices.Equal(got, []string{"1", "1"}) {
		t.Errorf("stored %q", got)
	}
}

func TestP04Shutdown(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	g := serve(t, Config{}, &fakeStream{})
	idle := g.dial().send(request11(events, "1\n", ndjson))
	idle.answer().want(t, 200, "")
	silent := g.dial()
	g.accept = func(context.Context, *event.Batch) error { close(entered); <-leave; return nil }
	busy := g.dial().send(request11(events, "2\n", ndjson))
	<-entered

	done := make(chan error, 1)
	go func() { done <- g.Shutdown(context.Background()) }()
	idle.closed()
	silent.closed()
	if c, err := net.Dial("tcp", g.addr); err == nil {
		c.Close()
		t.Error("connections are still accepted")
	}
	close(leave)
	if r := busy.answer().want(t, 200, ""); !r.Close {
		t.Error("the answer does not say Connection: close")
	}
	busy.closed()
	if err := <-done; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if got := g.data(); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("stored %q", got)
	}
	if err := g.Shutdown(context.Background()); err != nil {
		t.Errorf("second Shutdown: %v", err)
	}
}

func TestShutdownDropsWhatOutlivesTheDeadline(t *testing.T) {
	entered := make(chan struct{})
	g := serve(t, Config{}, &fakeStream{accept: func(ctx context.Context, _ *event.Batch) error {
		close(entered)
		<-ctx.Done() // nobody leaves but by the end of its context
		return ctx.Err()
	}})
	busy := g.dial().send(request11(events, "1\n", ndjson))
	half := g.dial().send(request11(events, "1\n", ndjson)[:20])
	<-entered
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := g.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown: %v", err)
	}
	half.closed()
	if res, err := http.ReadResponse(busy.r, nil); err == nil && res.StatusCode != 503 { // where the answer is faster than the drop
		t.Errorf("a dropped request got %d", res.StatusCode)
	}
	err := <-g.ran
	g.ran <- err
	g.nothing()
}

func TestShutdownBeforeRun(t *testing.T) {
	server, err := New(Config{Listen: "127.0.0.1:0"}, fakeGate{}, Deps{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(server.Shutdown(context.Background()), server.Shutdown(context.Background())); err != nil {
		t.Error(err)
	}
	if err := server.Run(context.Background()); err == nil {
		t.Error("Run without Listen worked")
	}
	if _, err := server.Listen(); err != nil {
		t.Fatal(err)
	}
	if err := server.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	if err := server.Run(context.Background()); err != nil {
		t.Errorf("Run behind Shutdown: %v", err)
	}
}

func TestH07RequestsPerConnection(t *testing.T) {
	g := serve(t, Config{MaxRequestsPerConnection: 100}, &fakeStream{})
	c := g.dial()
	for i := range 100 {
		if r := c.send(request11(events, "1\n", ndjson)).answer().want(t, 200, ""); r.Close != (i == 99) {
			t.Errorf("answer %d: close %v", i, r.Close)
		}
	}
	c.closed()
}

func TestH05ConnectionAge(t *testing.T) {
	g := serve(t, Config{MaxConnectionAge: time.Nanosecond}, &fakeStream{})
	c := g.dial().send(request11(events, "1\n", ndjson))
	if r := c.answer().want(t, 200, ""); !r.Close {
		t.Error("an old connection stays open")
	}
	c.closed()
}

// H05: what a client sent behind the last request of an old connection does not cost it the answer, as a reset would.
func TestH05LastAnswerOfAnOldConnectionArrives(t *testing.T) {
	g := serve(t, Config{MaxConnectionAge: time.Nanosecond}, &fakeStream{})
	c := g.dial().send(strings.Repeat(request11(events, "1\n", ndjson), 1000)) // more than is read at once
	if r := c.answer().want(t, 200, ""); !r.Close {
		t.Error("an old connection stays open")
	}
	if rest, err := io.ReadAll(c.r); err != nil || len(rest) > 0 {
		t.Errorf("behind the answer: %q, %v", rest, err)
	}
}

func TestH10MaxConnections(t *testing.T) {
	for name, c := range map[string]struct {
		cfg     Config
		status  int
		code    event.Code
		setting string
	}{
		"all":         {Config{MaxConnections: 2}, 503, event.Overloaded, "http.max_connections"},
		"files":       {Config{MaxSockets: 2}, 503, event.Overloaded, "ulimit -n"},
		"one address": {Config{MaxConnectionsPerAddress: 2}, 429, event.CallerRate, "http.max_connections_per_address"},
	} {
		t.Run(name, func(t *testing.T) {
			g := serve(t, c.cfg, &fakeStream{})
			first, second := g.dial(), g.dial()
			first.send(request11(events, "1\n", ndjson)).answer().want(t, 200, "")
			second.send(request11(events, "1\n", ndjson)).answer().want(t, 200, "")
			surplus := g.dial()
			r := surplus.answer().want(t, c.status, c.code)
			if r.Header.Get("Retry-After") == "" || !r.Close {
				t.Errorf("header %v", r.Header)
			}
			if !strings.Contains(string(r.body), c.setting+")") {
				t.Errorf("%s does not name %s", r.body, c.setting)
			}
			if err := testutil.GatherAndCompare(g.metrics, strings.NewReader("# HELP headgate_http_connections Open connections of clients that send events: TCP, with TLS and without, and QUIC.\n"+
				"# TYPE headgate_http_connections gauge\nheadgate_http_connections 2\n"), "headgate_http_connections"); err != nil {
				t.Error(err)
			}
			surplus.closed()
			hasty := g.dial().send(request11(events, strings.Repeat("1\n", 100<<10), ndjson)) // and whoever writes first sees it, too
			hasty.answer().want(t, c.status, c.code)
			hasty.closed()
			second.send(request11(events, "1\n", ndjson)).answer().want(t, 200, "")
			first.Close()
			g.until(func() bool { return len(g.Server.open.all()) < 2 })
			g.dial().send(request11(events, "1\n", ndjson)).answer().want(t, 200, "")
		})
	}
}

// Connections over QUIC have one socket together, so that open files bound those over TCP alone.
func TestF30J06FilesDoNotBoundQUIC(t *testing.T) {
	r := newRoster(&Config{MaxConnections: 3, MaxSockets: 1})
	enter := func() *event.Problem { return r.enter(&conn{}, func() bool { return false }) }
	quic := func() error { return r.Enter(netip.Addr{}) }
	if no := enter(); no != nil {
		t.Fatal(no)
	}
	if no := enter(); no == nil || !strings.Contains(no.Detail, "takes 1 over TCP") {
		t.Errorf("a second one over TCP: %v", no)
	}
	if err := errors.Join(quic(), quic()); err != nil {
		t.Error(err)
	}
	if err := quic(); err == nil || !strings.Contains(err.Error(), "http.max_connections") {
		t.Errorf("one more than there may be: %v", err)
	}
}

// all returns the connections that are open now.
func (r *roster) all() (all []*conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.conns {
		all = append(all, c)
	}
	return all
}

// scripted is a listener whose Accept fails with errs, one after another, then yields one end of a pipe.
type scripted struct {
	net.Listener
	errs  []error
	calls []time.Time
}

func (s *scripted) Accept() (net.Conn, error) {
	s.calls = append(s.calls, time.Now())
	if n := len(s.calls); n <= len(s.errs) {
		return nil, s.errs[n-1]
	}
	near, _ := net.Pipe()
	return near, nil
}

func (s *scripted) Close() error { return nil }

// F30: out of file descriptors is no reason to stop serving.
func TestF30AcceptBacksOffAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wrap := func(e syscall.Errno) error { return &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", e)} }
		s := &scripted{errs: append(slices.Repeat([]error{wrap(syscall.EMFILE)}, 10), wrap(syscall.ECONNABORTED), wrap(syscall.ENFILE), wrap(syscall.ENOBUFS))}
		l := newListener(s, newRoster(&Config{MaxConnections: 1}), nil, slog.New(slog.DiscardHandler))
		if _, err := l.Accept(); err != nil {
			t.Fatal(err)
		}
		for i, want := range []time.Duration{5, 10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000} {
			if got := s.calls[i+1].Sub(s.calls[i]); got != want*time.Millisecond {
				t.Errorf("pause %d is %v, want %v ms", i, got, int(want))
			}
		}
	})
}

func TestF30CloseEndsTheBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{errs: slices.Repeat([]error{error(syscall.EMFILE)}, 1000)}
		l := newListener(s, newRoster(&Config{MaxConnections: 1}), nil, slog.New(slog.DiscardHandler))
		done := make(chan error)
		go func() { _, err := l.Accept(); done <- err }()
		synctest.Wait()
		l.Close()
		if err := <-done; !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

// F30, with the real thing: the process runs out of descriptors, and serves again when some are free.
func TestF30OutOfDescriptors(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{})
	g.post("1\n", ndjson).want(t, 200, "")
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	probe, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	low := old
	low.Cur = uint64(probe.Fd()) + 8
	probe.Close()
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low); err != nil {
		t.Skipf("set limit: %v", err)
	}
	defer syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old)
	waiting := g.dial()
	g.until(func() bool { return len(g.Server.open.all()) == 2 }) // it and the first: nothing more to accept
	var taken []*os.File
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		taken = append(taken, f)
	}
	taken[0].Close()
	another := g.dial() // takes the last descriptor: the server has none to accept it with
	for _, f := range taken[1:] {
		f.Close()
	}
	waiting.send(request11(events, "1\n", ndjson)).answer().want(t, 200, "")
	another.send(request11(events, "1\n", ndjson)).answer().want(t, 200, "")
}

// P03, over HTTP/1.1: who goes on sending gets an answer that says it is the last one, and does not hold up the stop.
func TestP03ClientThatGoesOnSending(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{})
	text := strings.Repeat(request11(events, "1\n", ndjson), 100)
	var senders sync.WaitGroup
	for range 4 {
		c := g.dial()
		senders.Go(func() {
			for {
				if _, err := io.WriteString(c.Conn, text); err != nil {
					return
				}
			}
		})
		senders.Go(func() { io.Copy(io.Discard, c.r) })
	}
	g.until(func() bool { return len(g.data()) > 0 })
	if err := g.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	g.until(func() bool { return len(g.Server.open.all()) == 0 }) // fasthttp has let go of them, a moment before they are closed
	senders.Wait()
}
