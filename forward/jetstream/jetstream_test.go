package jetstream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/forward/jetstream"
	"github.com/headgate-io/headgate/internal/leaks"
	"github.com/headgate-io/headgate/internal/natsd"
)

func TestMain(m *testing.M) { leaks.Main(m) }

const gateway = "00112233aabbccdd"

var quiet = slog.New(slog.DiscardHandler)

// rig is an embedded server with the stream "web" on it.
type rig struct {
	t        testing.TB
	server   *natsd.Server
	conn     *nats.Conn // the backend's
	side     js.JetStream
	backend  *jetstream.Backend
	external bool // as if the server outlived the gateway
	reader   *jetstream.Reader
}

func newRig(t testing.TB, dir string, maxBytes int64) *rig {
	t.Helper()
	server, err := natsd.Start(t.Context(), natsd.Config{Name: "data", Dir: dir, MaxStore: 1 << 30}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	r := &rig{t: t, server: server}
	r.conn = r.connect()
	if r.side, err = js.New(r.connect(), js.WithDefaultTimeout(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if r.reader, err = jetstream.NewReader(r.connect(), 1); err != nil {
		t.Fatal(err)
	}
	r.backend = r.open(maxBytes)
	return r
}

func (r *rig) connect() *nats.Conn {
	r.t.Helper()
	nc, err := r.server.Connect("test")
	if err != nil {
		r.t.Fatal(err)
	}
	return nc
}

// open returns a backend that knows nothing, as after a restart of the gateway.
func (r *rig) open(maxBytes int64) *jetstream.Backend {
	r.t.Helper()
	cfg := jetstream.Config{Stream: "web", Gateway: gateway, MaxBytes: maxBytes, Timeout: time.Minute, Own: !r.external}
	b, err := jetstream.Open(r.t.Context(), r.conn, cfg, quiet)
	if err != nil {
		r.t.Fatal(err)
	}
	return b
}

func (r *rig) send(run *forward.Run) {
	r.t.Helper()
	if err := r.backend.Send(r.t.Context(), run); err != nil {
		r.t.Fatalf("send %s: %v", run.ID, err)
	}
}

func (r *rig) read(q jetstream.Query) []jetstream.Message {
	r.t.Helper()
	q.Stream = "web"
	var all []jetstream.Message
	err := r.reader.Read(r.t.Context(), q, func(m jetstream.Message) error {
		all = append(all, m)
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

// put stores a message past the backend, as a second writer or an earlier publish would.
func (r *rig) put(partition int32, header nats.Header, payload []byte) {
	r.t.Helper()
	msg := &nats.Msg{Subject: jetstream.Subject("web", partition, gateway), Header: header, Data: payload}
	if _, err := r.side.PublishMsg(r.t.Context(), msg); err != nil {
		r.t.Fatal(err)
	}
}

func newRun(partition int32, first uint64, events int) *forward.Run {
	payload := bytes.Repeat(fmt.Appendf(nil, "%d/%d\n", partition, first), events)
	return &forward.Run{
		Stream: "web", Partition: partition, First: first, Last: first + uint64(events) - 1, Events: events, Frames: 1,
		TableVersion: 7, ContentType: "application/x-ndjson", ContentEncoding: "zstd",
		ID: fmt.Sprintf("%s.web.%d.%d+1", gateway, partition, first), Payload: payload,
	}
}

func sendError(t *testing.T, err error) *forward.SendError {
	t.Helper()
	var e *forward.SendError
	if !errors.As(err, &e) {
		t.Fatalf("error %v (%T) is no SendError", err, err)
	}
	return e
}

func TestRunsComeBackAsSent(t *testing.T) {
	r := newRig(t, t.TempDir(), 1<<20)
	plain := newRun(3, 11, 2)
	plain.ContentEncoding = ""
	sent := []*forward.Run{newRun(3, 1, 10), newRun(5, 1, 1), plain}
	for _, run := range sent {
		r.send(run)
	}
	got := r.read(jetstream.Query{})
	if len(got) != len(sent) {
		t.Fatalf("%d messages, sent %d", len(got), len(sent))
	}
	for i, m := range got {
		run := sent[i]
		if m.Time.IsZero() || m.Seq != uint64(i+1) {
			t.Errorf("message %d: seq %d, time %v", i, m.Seq, m.Time)
		}
		back := forward.Run{
			Stream: m.Stream, Partition: m.Partition, First: m.First, Last: m.Last, Events: m.Events, Frames: 1,
			TableVersion: m.TableVersion, ContentType: m.ContentType, ContentEncoding: m.ContentEncoding, ID: m.ID, Payload: m.Payload,
		}
		if fmt.Sprint(back) != fmt.Sprint(*run) || m.Gateway != gateway {
			t.Errorf("message %d: %+v from %s, sent %+v", i, back, m.Gateway, *run)
		}
	}
}

func TestMessagesHaveTheDocumentedHeaders(t *testing.T) {
	r := newRig(t, t.TempDir(), 1<<20)
	r.send(newRun(3, 1, 10))
	r.send(newRun(3, 11, 5))
	stream, err := r.side.Stream(t.Context(), "HEADGATE_web")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := stream.GetMsg(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if raw.Subject != "headgate.web.3."+gateway {
		t.Errorf("subject %s", raw.Subject)
	}
	want := map[string]string{
		"Nats-Msg-Id": gateway + ".web.3.11+1", "Nats-Expected-Last-Subject-Sequence": "1",
		"Content-Type": "application/x-ndjson", "Content-Encoding": "zstd",
		"Headgate-Stream": "web", "Headgate-Partition": "3", "Headgate-First-Seq": "11", "Headgate-Last-Seq": "15",
		"Headgate-Count": "5", "Headgate-Table-Version": "7",
	}
	for name, value := range want {
		if got := raw.Header.Get(name); got != value {
			t.Errorf("%s: %q, want %q", name, got, value)
		}
	}
	for name := range raw.Header {
		switch name {
		case "Nats-Stream", "Nats-Subject", "Nats-Sequence", "Nats-Time-Stamp": // from reading
			delete(raw.Header, name)
		}
	}
	if len(raw.Header) != len(want) {
		t.Errorf("headers %v", raw.Header)
	}
}

func TestOpenMakesTheDocumentedStream(t *testing.T) {
	r := newRig(t, t.TempDir(), 1<<20)
	r.send(newRun(0, 1, 1000))
	r.open(2 << 10) // an existing stream keeps its size
	stream, err := r.side.Stream(t.Context(), "HEADGATE_web")
	if err != nil {
		t.Fatal(err)
	}
	info := stream.CachedInfo()
	c := info.Config
	if c.Storage != js.FileStorage || c.Discard != js.DiscardNew || c.MaxBytes != 1<<20 || !c.AllowMsgTTL || !c.AllowDirect ||
		c.MaxAge != 0 || c.Duplicates.Minutes() != 2 || fmt.Sprint(c.Subjects) != "[headgate.web.*.*]" {
		t.Errorf("stream %+v", c)
	}
	if info.State.Msgs != 1 {
		t.Errorf("%d messages of 1", info.State.Msgs)
	}
	state, err := r.reader.State(t.Context(), "web")
	if err != nil || state.Messages != 1 || state.Ends[0] != 1 || state.MaxBytes != 1<<20 {
		t.Errorf("state %+v, %v", state, err)
	}
}

func TestOpenRefusesWhatDoesNotFit(t *testing.T) {
	r := newRig(t, t.TempDir(), 1<<20)
	_, err := jetstream.Open(t.Context(), r.conn, jetstream.Config{Stream: "big", Gateway: gateway, MaxBytes: 2 << 30}, quiet)
	if !errors.Is(err, jetstream.ErrFull) {
		t.Errorf("a stream over the server's size: %v", err)
	}
	r.open(2 << 30) // an existing stream keeps working with the size it has
	r.send(newRun(0, 1, 1))
	for _, cfg := range []jetstream.Config{
		{Stream: "a.b", Gateway: gateway, MaxBytes: 1}, {Stream: "", Gateway: gateway, MaxBytes: 1},
		{Stream: "a", Gateway: "*", MaxBytes: 1}, {Stream: "a", Gateway: gateway, MaxBytes: -1},
		{Stream: "a", Gateway: gateway, Streams: 3, Partitions: 2},
	} {
		if _, err := jetstream.Open(t.Context(), r.conn, cfg, quiet); err == nil {
			t.Errorf("%+v was accepted", cfg)
		}
	}
}

func TestClosedServerIsUnavailable(t *testing.T) {
	r := newRig(t, t.TempDir(), 1<<20)
	r.send(newRun(0, 1, 1))
	r.server.Close()
	e := sendError(t, r.backend.Send(t.Context(), newRun(0, 2, 1)))
	if e.Refused || e.Code != event.BackendUnavailable || e.Reason != "connection" {
		t.Errorf("%+v", e)
	}
}

func TestEndOfContextIsPassedOn(t *testing.T) {
	r := newRig(t, t.TempDir(), 1<<20)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.backend.Send(ctx, newRun(0, 1, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	r.send(newRun(0, 1, 1))
}
