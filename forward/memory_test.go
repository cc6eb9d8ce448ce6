package forward

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/leaks"
	"github.com/headgate-io/headgate/sdk/consume"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// memory is a backend that keeps what it confirms, after asking answer.
type memory struct {
	answer func(ctx context.Context, run *Run) error // nil: always confirmed
	resume func(partition int32) (uint64, error)     // nil: 0

	mu    sync.Mutex
	runs  []Run
	at    []time.Time
	tries int
	busy  map[int32]bool
}

func (m *memory) Resume(_ context.Context, partition int32) (uint64, error) {
	if m.resume == nil {
		return 0, nil
	}
	return m.resume(partition)
}

func (m *memory) Send(ctx context.Context, run *Run) error {
	m.enter(run)
	defer m.leave(run)
	if m.answer != nil {
		if err := m.answer(ctx, run); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	kept := *run
	kept.Payload = bytes.Clone(run.Payload)
	m.runs, m.at = append(m.runs, kept), append(m.at, time.Now())
	return nil
}

func (m *memory) enter(run *Run) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tries++
	if m.busy[run.Partition] {
		panic("two runs of one lane in flight")
	}
	if m.busy == nil {
		m.busy = map[int32]bool{}
	}
	m.busy[run.Partition] = true
}

func (m *memory) leave(run *Run) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy[run.Partition] = false
}

// sent returns the runs confirmed so far.
func (m *memory) sent() []Run {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Run(nil), m.runs...)
}

// events decodes runs into copies of their events and checks the runs' own figures.
func events(t *testing.T, runs []Run) (all []consume.Event) {
	t.Helper()
	for _, run := range runs {
		before := len(all)
		err := consume.Decode(run.Payload, run.ContentEncoding, run.ContentType, func(e consume.Event) error {
			for _, p := range []*[]byte{&e.Key, &e.ID, &e.Source, &e.TraceParent, &e.Data} {
				if *p != nil {
					*p = append([]byte{}, *p...)
				}
			}
			attrs := make([]consume.Attr, 0, len(e.Attrs))
			for _, a := range e.Attrs {
				attrs = append(attrs, consume.Attr{Name: bytes.Clone(a.Name), Value: bytes.Clone(a.Value)})
			}
			e.Attrs = attrs
			all = append(all, e)
			return nil
		})
		if err != nil {
			t.Fatalf("run %s: %v", run.ID, err)
		}
		if n := len(all) - before; n != run.Events || run.Last-run.First+1 != uint64(n) {
			t.Errorf("run %s says %d events, %d to %d, and has %d", run.ID, run.Events, run.First, run.Last, n)
		}
	}
	return all
}

func data(t *testing.T, runs []Run) (all []string) {
	for _, e := range events(t, runs) {
		all = append(all, string(e.Data))
	}
	return all
}

// config is that of most tests. Its codec has no channels: pooled zstd coders must not be used in several bubbles.
func config(partitions int) Config {
	return Config{Stream: "web", Gateway: "0011223344556677", Partitions: partitions, Codec: "s2"}
}

// start makes a forwarder and runs it; the test ends when it has drained.
func start(t *testing.T, cfg Config, backend Backend, deps Deps) *Forwarder {
	t.Helper()
	f, err := New(cfg, backend, deps)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- f.Run(context.Background()) }()
	t.Cleanup(func() {
		f.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return f
}

// batch makes a batch for partition 0 of the given events.
func batch(ack event.Level, data ...string) *event.Batch {
	b := &event.Batch{Stream: "web", ID: "batch", Ack: ack, TableVersion: 1}
	for _, d := range data {
		b.Events = append(b.Events, event.Event{Data: []byte(d), Slot: event.NoSlot, Child: event.NoSlot})
	}
	return b
}

// forward puts a batch into the lanes and returns its receipt.
func forward(t *testing.T, f *Forwarder, b *event.Batch) *Receipt {
	t.Helper()
	r := f.NewReceipt()
	if stale, err := f.Forward(t.Context(), b, r, nil); err != nil || stale != nil {
		t.Fatalf("forward: stale %v, %v", stale, err)
	}
	return r
}

// delivered waits for the backend's word on a batch.
func waitDelivered(t *testing.T, r *Receipt) {
	t.Helper()
	if err := r.Wait(t.Context(), event.Delivered); err != nil {
		t.Fatal(err)
	}
}

func wantCode(t *testing.T, err error, code event.Code, stored event.Stored) {
	t.Helper()
	p, ok := err.(*event.Problem)
	if !ok || p.Code != code || p.Stored != stored {
		t.Errorf("error %v (%T), want code %s, stored %q", err, err, code, stored)
	}
}

func wantStrings(t *testing.T, got []string, want ...string) {
	t.Helper()
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
