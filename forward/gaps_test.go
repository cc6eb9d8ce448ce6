package forward

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/compress"
	"github.com/headgate-io/headgate/sdk/wire"
)

// wantWhole checks that a run's numbers are those of its events.
func wantWhole(t *testing.T, runs []Run) {
	t.Helper()
	for _, r := range runs {
		if n := len(data(t, []Run{r})); r.Events != n || r.Last != r.First+uint64(n)-1 {
			t.Errorf("the run %s of %d to %d says %d events and has %d", r.ID, r.First, r.Last, r.Events, n)
		}
	}
}

// F01: numbers jump when a backend has seen higher ones than the spool; what waits on both sides of the gap is two runs.
func TestF01ARunEndsWhereNumbersJump(t *testing.T) {
	dir := t.TempDir()
	for life, seen := range []uint64{0, 1 << 24} {
		m := &memory{answer: down, resume: func(int32) (uint64, error) { return seen, nil }}
		f := startSpooled(t, dir, spoolConfig(), m, Deps{})
		for i := range 5 {
			if err := forward(t, f.Forwarder, batch(event.Durable, fmt.Sprint(life, i))).Wait(t.Context(), event.Durable); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.stop(); err != nil {
			t.Fatal(err)
		}
	}
	m := &memory{}
	f := startSpooled(t, dir, spoolConfig(), m, Deps{})
	waitDelivered(t, forward(t, f.Forwarder, batch(event.Delivered, "end")))
	wantStrings(t, data(t, m.sent()), "0 0", "0 1", "0 2", "0 3", "0 4", "1 0", "1 1", "1 2", "1 3", "1 4", "end")
	wantWhole(t, m.sent())
}

// M09: a frame in the middle that is damaged leaves a gap, which no run goes across.
func TestM09ARunEndsAtADamagedFrame(t *testing.T) {
	dir := t.TempDir()
	f := startSpooled(t, dir, spoolConfig(), &memory{answer: down}, Deps{})
	for i := range 5 {
		if err := forward(t, f.Forwarder, batch(event.Durable, fmt.Sprint("event ", i))).Wait(t.Context(), event.Durable); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.stop(); err != nil {
		t.Fatal(err)
	}
	segments, err := filepath.Glob(filepath.Join(dir, "*.seg"))
	if err != nil || len(segments) == 0 {
		t.Fatal(segments, err)
	}
	hit := 0
	for _, path := range segments {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		hit += bytes.Count(raw, []byte("event 2"))
		if err := os.WriteFile(path, bytes.ReplaceAll(raw, []byte("event 2"), []byte("EVENT 2")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if hit != 1 {
		t.Fatalf("the event is in the spool %d times", hit)
	}
	m := &memory{}
	f = startSpooled(t, dir, spoolConfig(), m, Deps{})
	waitDelivered(t, forward(t, f.Forwarder, batch(event.Delivered, "end")))
	wantStrings(t, data(t, m.sent()), "event 0", "event 1", "event 3", "event 4", "end")
	wantWhole(t, m.sent())
}

// Frames that do not follow each other are never one run, whoever puts them together.
func TestFramesWithAGapAreNotDeliveredAsOne(t *testing.T) {
	m := &memory{}
	f, err := New(config(1), m, Deps{})
	if err != nil {
		t.Fatal(err)
	}
	codec, err := compress.ByName("s2")
	if err != nil {
		t.Fatal(err)
	}
	l := f.lanes[0]
	for _, first := range []uint64{1, 2, 9, 10, 4} {
		fr := takeFrame()
		fr.lane, fr.codec, fr.framing, fr.first, fr.events, fr.durable = l, codec, wire.NDJSON, first, 1, true
		fr.payload = &buffer{b: codec.Append(nil, fmt.Appendf(nil, "%d\n", first))}
		l.queue = append(l.queue, fr)
	}
	l.sealed, l.inflight = len(l.queue), len(l.queue)
	if !l.deliver(t.Context(), l.queue[:len(l.queue):len(l.queue)]) {
		t.Fatal("not delivered")
	}
	var shape []string
	for _, r := range m.sent() {
		shape = append(shape, fmt.Sprintf("%d-%d: %d in %d", r.First, r.Last, r.Events, r.Frames))
	}
	wantStrings(t, shape, "1-2: 2 in 2", "9-10: 2 in 2", "4-4: 1 in 1")
	wantWhole(t, m.sent())
}

// E07, F01: events that were set aside are not set aside again by the next process, nor is any delivered piece sent again:
// it goes on where the last one was, in the middle of a frame.
func TestE07ARestartBuriesNothingAgain(t *testing.T) {
	dir, buried := t.TempDir(), map[string]int{}
	cfg := config(1)
	cfg.Codec = "none"
	bad := batch(event.Durable, "good")
	for i := range 250 {
		bad.Events = append(bad.Events, event.Event{Data: fmt.Append(nil, "poison ", i), Slot: event.NoSlot, Child: event.NoSlot})
	}
	refuse, got := poisoned(t, "poison"), []string{}
	for life := range 3 {
		stuck := make(chan struct{}, 1)
		m := &memory{}
		m.answer = func(ctx context.Context, r *Run) error {
			err := refuse(ctx, r)
			if r.Events == 1 && err != nil && len(buried) == min(100*(life+1), 250) {
				select {
				case stuck <- struct{}{}:
				default:
				}
			}
			return err
		}
		letters := buryFunc(func(r *Refused) { buried[string(r.Event.Data)]++ })
		f := startSpooled(t, dir, cfg, m, Deps{DeadLetter: letters})
		if life == 0 {
			if err := forward(t, f.Forwarder, bad).Wait(t.Context(), event.Durable); err != nil {
				t.Fatal(err)
			}
		}
		if life < 2 {
			<-stuck // after a hundred in a row it waits
			f.kill()
		} else {
			waitDelivered(t, forward(t, f.Forwarder, batch(event.Delivered, "end")))
			if c := f.lanes[0].snapshot(); c.accepted != 51 || c.refused != 50 || c.delivered != 1 || c.spooled != 0 || c.sealed != 0 || c.inflight != 0 {
				t.Errorf("counts %+v", c)
			}
			if err := f.stop(); err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
		wantWhole(t, m.sent())
		got = append(got, data(t, m.sent())...)
	}
	wantStrings(t, got, "good", "end")
	if len(buried) != 250 {
		t.Errorf("%d events were set aside, want 250", len(buried))
	}
	for text, n := range buried {
		if n != 1 {
			t.Errorf("%s was set aside %d times", text, n)
		}
	}
}
