package forwardtest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward"
)

// Start runs a forwarder of Stream and Gateway over a backend until stop, or the end of the test, which both wait for
// it to drain.
func Start(t *testing.T, cfg forward.Config, b forward.Backend) (f *forward.Forwarder, stop func()) {
	t.Helper()
	cfg.Stream, cfg.Gateway = Stream, Gateway
	f, err := forward.New(cfg, b, forward.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- f.Run(context.Background()) }() // that of t ends before its cleanup
	stop = sync.OnceFunc(func() {
		f.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return f, stop
}

// Batch makes a batch whose events go to the partitions in turn.
func Batch(partitions int, events ...string) *event.Batch {
	b := &event.Batch{Stream: Stream, ID: "batch", Ack: event.Delivered, TableVersion: 1}
	for i, data := range events {
		b.Events = append(b.Events, event.Event{
			Data: []byte(data), Partition: int32(i % partitions), Slot: event.NoSlot, Child: event.NoSlot,
		})
	}
	return b
}

// Deliver forwards a batch, waits for the backend's word, and returns what was refused.
func Deliver(t *testing.T, f *forward.Forwarder, b *event.Batch) []forward.Failure {
	t.Helper()
	r := f.NewReceipt()
	if stale, err := f.Forward(t.Context(), b, r, nil); err != nil || stale != nil {
		t.Fatalf("forward: stale %v, %v", stale, err)
	}
	if err := r.Wait(t.Context(), event.Delivered); err != nil {
		t.Fatal(err)
	}
	return r.Failed()
}

// behindForwarder: of all events in all codecs only those that are refused alone fail, and each lane keeps its order.
func behindForwarder(t *testing.T, h *Harness) {
	const lanes = 3
	var want [lanes][]string
	for i, codec := range []string{"zstd", "s2", "lz4", "gzip", "none"} {
		f, stop := Start(t, forward.Config{Partitions: lanes, Codec: codec, FrameEvents: 20}, h.Backend)
		var events []string
		for n := range 100 {
			events = append(events, fmt.Sprintf(`{"codec":%q,"n":%d}`, codec, n))
		}
		events[42] = h.Refused
		failed := Deliver(t, f, Batch(lanes, events...))
		if len(failed) != 1 || failed[0] != (forward.Failure{Index: 42, Code: h.RefusedCode}) {
			t.Errorf("%s: failed %v, want event 42 with %s", codec, failed, h.RefusedCode)
		}
		stop()
		for n, e := range events {
			if n != 42 {
				want[n%lanes] = append(want[n%lanes], e)
			}
		}
		if i == 0 {
			h.Backend = h.Reopen()
		}
	}
	for p := range want {
		if got := Events(t, Lane(h.Stored(), int32(p))...); fmt.Sprint(got) != fmt.Sprint(want[p]) {
			t.Errorf("lane %d holds\n%q, want\n%q", p, got, want[p])
		}
	}
}
