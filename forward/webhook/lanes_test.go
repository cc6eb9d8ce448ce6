package webhook_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/forward/forwardtest"
	"github.com/headgate-io/headgate/forward/webhook"
)

func containsSecret(text string) bool { return strings.Contains(text, "secret") }

// lanesOf tells which of the partitions belong to a receiver, by asking for each.
func lanesOf(t *testing.T, partitions int, cfg webhook.Config, node *forwardtest.Receiver) map[int32]bool {
	t.Helper()
	b := open(t, webhook.Config{Nodes: cfg.Nodes})
	for p := range int32(partitions) {
		if err := b.Send(t.Context(), forwardtest.NewRun(p, 1, "probe")); err != nil {
			t.Fatal(err)
		}
	}
	mine := map[int32]bool{}
	for _, run := range node.Runs() {
		mine[run.Partition] = true
	}
	return mine
}

// One of two nodes is down: the lanes of the other go on, its own wait, and it is named; when it is back
// everything arrives, once and in order.
func TestANodeDownAndUp(t *testing.T) {
	const partitions = 16
	good, bad := forwardtest.NewReceiver(t), forwardtest.NewReceiver(t)
	cfg := webhook.Config{Nodes: []string{good.URL, bad.URL}}
	down := lanesOf(t, partitions, cfg, bad)
	if len(down) == 0 || len(down) == partitions {
		t.Fatalf("%d of %d lanes belong to one of two nodes", len(down), partitions)
	}
	bad.Stop()
	watch := &logWatch{opened: make(chan struct{})}
	b := openLogging(t, cfg, slog.New(watch))
	f, _ := forwardtest.Start(t, forward.Config{Partitions: partitions}, b)
	waiting, going := forwardtest.Batch(1), forwardtest.Batch(1)
	for p := range int32(partitions) {
		batch := going
		if down[p] {
			batch = waiting
		}
		batch.Events = append(batch.Events, event.Event{Data: fmt.Append(nil, p), Partition: p, Slot: event.NoSlot, Child: event.NoSlot})
	}
	r := f.NewReceipt()
	if _, err := f.Forward(t.Context(), waiting, r, nil); err != nil {
		t.Fatal(err)
	}
	<-watch.opened
	if text := b.Err().Error(); !strings.Contains(text, bad.URL) || strings.Contains(text, good.URL) {
		t.Errorf("the error names %s, want %s", text, bad.URL)
	}
	before := len(good.Runs())
	forwardtest.Deliver(t, f, going)
	if got := len(forwardtest.Events(t, good.Runs()[before:]...)); got != len(going.Events) {
		t.Errorf("%d events at the node that is up, want %d", got, len(going.Events))
	}
	before = len(bad.Runs())
	bad.Start()
	if err := r.Wait(t.Context(), event.Delivered); err != nil {
		t.Fatal(err)
	}
	if got := len(forwardtest.Events(t, bad.Runs()[before:]...)); got != len(waiting.Events) || b.Err() != nil {
		t.Errorf("%d events at the node that is back, want %d; readiness: %v", got, len(waiting.Events), b.Err())
	}
}

// F21: faulty in every way at once, and yet everything arrives in order, but for what is refused alone.
func TestF21EveryFaultInTurn(t *testing.T) {
	for _, codec := range []string{"zstd", "none"} {
		node := forwardtest.NewReceiver(t)
		node.Recognise = true
		node.Judge(refuse(t, "poison", 400))
		b := open(t, webhook.Config{Nodes: []string{node.URL}, Timeout: 50 * time.Millisecond})
		node.Script(
			forwardtest.Answer{Status: 503, Header: map[string]string{"Retry-After": "0"}},
			forwardtest.Answer{Cut: forwardtest.BeforeHeaders, Store: true},
			forwardtest.Answer{Status: 429}, forwardtest.Answer{After: make(chan struct{})},
			forwardtest.Answer{Cut: forwardtest.InBody}, forwardtest.Answer{Status: 404}, forwardtest.Answer{Status: 307},
		)
		f, stop := forwardtest.Start(t, forward.Config{Partitions: 1, Codec: codec, FrameEvents: 10}, b)
		var events, want []string
		for i := range 50 {
			events = append(events, fmt.Sprint("event ", i))
			if i != 7 && i != 33 {
				want = append(want, events[i])
			}
		}
		events[7], events[33] = "poison", "poison"
		failed := forwardtest.Deliver(t, f, forwardtest.Batch(1, events...))
		stop()
		if fmt.Sprint(failed) != "[{7 backend_refused false} {33 backend_refused false}]" {
			t.Errorf("%s: failed %v, want 7 and 33", codec, failed)
		}
		// A run that holds poison and was stored with its answer lost comes again in pieces: nobody can avoid that.
		got := forwardtest.Events(t, node.Runs()...)
		if len(got) > len(want) {
			got = got[len(got)-len(want):]
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: the node has %q, want %q", codec, got, want)
		}
	}
}

// F01, without the dead letter: a node with a limit gets parts that fit; only the one large event is refused.
func TestF01PartsFitANodesLimit(t *testing.T) {
	const limit = 10_000
	var mu sync.Mutex
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
		if err != nil {
			w.WriteHeader(http.StatusRequestEntityTooLarge) // and the connection closes under the client
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for line := range bytes.Lines(body) {
			got = append(got, string(line[:5]))
		}
	}))
	defer server.Close()
	f, stop := forwardtest.Start(t, forward.Config{Partitions: 1, Codec: "none"}, open(t, webhook.Config{Nodes: []string{server.URL}}))
	var events, want []string
	for i := range 200 {
		events = append(events, fmt.Sprintf("%05d %s", i, strings.Repeat("x", 1000)))
		if i != 77 {
			want = append(want, fmt.Sprintf("%05d", i))
		}
	}
	events[77] += strings.Repeat("x", 4<<20) // more than any socket's buffers
	failed := forwardtest.Deliver(t, f, forwardtest.Batch(1, events...))
	stop()
	if fmt.Sprint(failed) != "[{77 event_too_large false}]" {
		t.Errorf("failed %v, want 77", failed)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the node has %q", got)
	}
}

// A node that answers before it has read everything, and reads no more, is understood.
func TestAnEarlyAnswer(t *testing.T) {
	for _, hangUp := range []bool{true, false} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		release, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			_, _ = io.ReadFull(conn, make([]byte, 100))
			_, _ = io.WriteString(conn, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			if !hangUp {
				<-release
			}
		}()
		b := open(t, webhook.Config{Nodes: []string{"http://" + l.Addr().String()}, Timeout: 5 * time.Second})
		err = b.Send(t.Context(), forwardtest.NewRun(0, 1, strings.Repeat("x", 32<<20)))
		if err == nil || !strings.Contains(err.Error(), "413") {
			t.Errorf("hang up %v: %v", hangUp, err)
		}
		close(release)
		<-done
		l.Close()
	}
}

func TestHTTPS(t *testing.T) {
	var mu sync.Mutex
	protocols := map[string]int{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		protocols[r.Proto]++
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // it complains of who does not trust it
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	b := open(t, webhook.Config{Nodes: []string{server.URL}, TLS: &tls.Config{RootCAs: roots}})
	for p := range int32(3) {
		for n := range uint64(3) {
			if err := b.Send(t.Context(), forwardtest.NewRun(p, n+1, "a")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if protocols["HTTP/1.1"] != 9 {
		t.Errorf("requests by protocol: %v", protocols)
	}
	b = open(t, webhook.Config{Nodes: []string{server.URL}})
	if err := b.Send(t.Context(), forwardtest.NewRun(0, 1, "a")); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a certificate of nobody: %v", err)
	}
}

// A lane keeps one connection, and what it sends costs little memory.
func TestLanesKeepTheirConnections(t *testing.T) {
	node := newPlainNode(t)
	b := open(t, webhook.Config{Nodes: []string{node.url}})
	var lanes sync.WaitGroup
	for p := range int32(4) {
		lanes.Go(func() {
			for n := range uint64(50) {
				if err := b.Send(t.Context(), forwardtest.NewRun(p, n+1, "a")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	lanes.Wait()
	if n := node.opened.Load(); n != 4 {
		t.Errorf("%d connections of 4 lanes", n)
	}
	run := forwardtest.NewRun(0, 100, strings.Repeat("x", 512<<10))
	allocs := testing.AllocsPerRun(20, func() {
		if err := b.Send(context.Background(), run); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 30 {
		t.Errorf("%v allocations a run", allocs)
	}
}

func BenchmarkSend(b *testing.B) {
	node := newPlainNode(b)
	backend := open(b, webhook.Config{Nodes: []string{node.url}})
	run := forwardtest.NewRun(0, 100, strings.Repeat("x", 64<<10))
	b.SetBytes(int64(len(run.Payload)))
	b.ReportAllocs()
	for b.Loop() {
		if err := backend.Send(context.Background(), run); err != nil {
			b.Fatal(err)
		}
	}
}

// plainNode answers 200 to everything and allocates nothing.
type plainNode struct {
	url    string
	opened atomic.Int64
}

func newPlainNode(t testing.TB) *plainNode {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &plainNode{url: "http://" + l.Addr().String()}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			n.opened.Add(1)
			all.Go(func() { serve(conn) })
		}
	})
	t.Cleanup(all.Wait) // after the backend, which closes the connections
	t.Cleanup(func() { l.Close() })
	return n
}

func serve(conn net.Conn) {
	defer conn.Close()
	r, length := bufio.NewReader(conn), 0
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return
		}
		if name, value, ok := bytes.Cut(line, []byte(": ")); ok && string(name) == "Content-Length" {
			length, _ = strconv.Atoi(string(bytes.TrimSpace(value)))
		}
		if string(line) == "\r\n" {
			_, _ = r.Discard(length)
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") // a failure shows at the next line
		}
	}
}

// logWatch is a log that closes opened at its first warning.
type logWatch struct {
	once   sync.Once
	opened chan struct{}
}

func (w *logWatch) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (w *logWatch) WithAttrs([]slog.Attr) slog.Handler               { return w }
func (w *logWatch) WithGroup(string) slog.Handler                    { return w }
func (w *logWatch) Handle(context.Context, slog.Record) error {
	w.once.Do(func() { close(w.opened) })
	return nil
}
