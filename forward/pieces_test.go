package forward

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/budget"
)

// poisoned refuses every run that contains the word.
func poisoned(t *testing.T, word string) func(context.Context, *Run) error {
	return func(_ context.Context, run *Run) error {
		if slices.ContainsFunc(data(t, []Run{*run}), func(e string) bool { return strings.Contains(e, word) }) {
			return &SendError{Refused: true}
		}
		return nil
	}
}

// hundred is a batch of a hundred events of two requests' worth of everything that metadata can say.
func hundred(ack event.Level) *event.Batch {
	b := batch(ack)
	b.Producer, b.Arrived, b.Chain = []byte("10.0.0.1"), 1e18, "sha256:0"
	for i := range 100 {
		key := fmt.Sprintf("key-%d", i%7)
		e := event.Event{Data: fmt.Appendf(nil, `{"n":%d,"k":%q}`, i, key), Key: []byte(key), HasKey: i%11 != 0,
			Hash: uint64(i%7) << 58, Slot: int32(i % 7), Child: event.NoSlot, Epoch: uint32(i%7 + 1), ID: fmt.Append(nil, "id-", i)}
		if i%7 == 3 {
			e.Child, e.Epoch = 100, 9
		}
		if i%5 == 0 {
			e.Time, e.Attrs = int64(i+1), []event.Attr{{Name: []byte("type"), Value: []byte(key)}}
		}
		b.Events = append(b.Events, e)
	}
	return b
}

// E07: of all events, after batching and compression, the answer names the one that the backend refuses.
func TestE07OnlyTheCulpritFails(t *testing.T) {
	for _, codec := range []string{"s2", "gzip", "none"} {
		synctest.Test(t, func(t *testing.T) {
			m := &memory{answer: poisoned(t, `"n":42,`)}
			cfg, limit := config(1), budget.New(1<<20)
			cfg.Codec = codec
			f := start(t, cfg, m, Deps{Budget: limit})
			before, r := forward(t, f, batch(event.Delivered, "before")), forward(t, f, hundred(event.Delivered))
			waitDelivered(t, r)
			waitDelivered(t, before)
			if got := fmt.Sprint(before.Failed(), r.Failed()); got != "[] [{42 backend_refused false}]" {
				t.Errorf("%s: failed %s, want event 42 alone", codec, got)
			}
			want := []string{"before"}
			for i, e := range hundred(0).Events {
				if i != 42 {
					want = append(want, string(e.Data))
				}
			}
			wantStrings(t, data(t, m.sent()), want...)
			if m.tries > 20 {
				t.Errorf("%s: %d sends to find one event of 101", codec, m.tries)
			}
			if limit.Held() != 0 {
				t.Errorf("%s: %d bytes held, want 0", codec, limit.Held())
			}
		})
	}
}

// Pieces have the numbers of their events, and ids that no frame and no other piece has.
func TestPiecesAreNamedByTheirEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ids []string
		refuse := poisoned(t, "poison")
		m := &memory{answer: func(ctx context.Context, run *Run) error { ids = append(ids, run.ID); return refuse(ctx, run) }}
		cfg := config(1)
		cfg.FrameEvents = 3
		release := make(chan struct{})
		first := true
		held := m.answer
		m.answer = func(ctx context.Context, run *Run) error {
			if first {
				first = false
				<-release
			}
			return held(ctx, run)
		}
		f := start(t, cfg, m, Deps{})
		forward(t, f, batch(event.Accepted, "a", "b", "c"))
		synctest.Wait() // in flight: what follows becomes one run
		r := forward(t, f, batch(event.Delivered, "d", "e", "f", "g", "poison", "i", "j", "k", "l"))
		<-time.After(time.Second)
		close(release)
		waitDelivered(t, r)
		const lane = "0011223344556677.web.0."
		wantStrings(t, ids, lane+"1+1", lane+"4+3", lane+"4+1", lane+"7+2", lane+"7+1",
			lane+"7-7", lane+"8-9", lane+"8-8", lane+"9-9", lane+"10+1")
		wantStrings(t, data(t, m.sent()), "a", "b", "c", "d", "e", "f", "g", "i", "j", "k", "l")
		if got := fmt.Sprint(r.Failed()); got != "[{4 backend_refused false}]" {
			t.Errorf("failed %s, want event 4", got)
		}
	})
}

// A piece says of its events what the whole frame said, in any cut.
func TestPiecesKeepTheMetadata(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		f := start(t, config(1), m, Deps{})
		forward(t, f, batch(event.Accepted, "another request"))
		waitDelivered(t, forward(t, f, hundred(event.Delivered)))
		whole := m.sent()[0]
		want := events(t, []Run{whole})
		fr := &frame{payload: &buffer{b: whole.Payload}, codec: f.codec, events: whole.Events}
		p := takeApart(fr)
		for from := range whole.Events {
			for _, to := range []int{from + 1, min(from+2, whole.Events), (from + whole.Events + 1) / 2, whole.Events} {
				if to <= from {
					continue
				}
				piece := whole
				piece.First, piece.Last, piece.Events = whole.First+uint64(from), whole.First+uint64(to)-1, to-from
				piece.Payload = p.encode(from, to)
				if got := events(t, []Run{piece}); fmt.Sprint(got) != fmt.Sprint(want[from:to]) {
					t.Fatalf("events %d to %d come out as\n%v, want\n%v", from, to, got, want[from:to])
				}
			}
		}
		if again := p.encode(0, whole.Events); !bytes.Equal(again, whole.Payload) {
			t.Error("the whole, cut out of itself, is another frame")
		}
	})
}

// A piece is retried like any run, and a hard stop in the middle leaves nobody waiting.
func TestPiecesAreRetriedAndStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse, down := poisoned(t, "poison"), 3
		m := &memory{answer: func(ctx context.Context, run *Run) error {
			if err := refuse(ctx, run); err != nil || run.First == 1 {
				return err
			}
			if down--; down > 0 {
				return fmt.Errorf("down")
			}
			return block(ctx, run)
		}}
		f, err := New(config(1), m, Deps{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- f.Run(ctx) }()
		r := forward(t, f, batch(event.Delivered, "a", "b", "poison", "c"))
		<-time.After(20 * time.Second)
		stop()
		<-done
		wantCode(t, r.Wait(t.Context(), event.Delivered), event.Draining, "unknown")
		wantStrings(t, data(t, m.sent()), "a", "b")
	})
}

// A backend that refuses everything loses nothing beyond the first hundred events: the lane holds the next one until
// the backend takes it.
func TestALaneStopsGivingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sane atomic.Bool
		m := &memory{answer: func(context.Context, *Run) error {
			if sane.Load() {
				return nil
			}
			return &SendError{Refused: true}
		}}
		f := start(t, config(1), m, Deps{})
		b := batch(event.Delivered)
		for range 250 {
			b.Events = append(b.Events, event.Event{Data: []byte("fine"), Slot: event.NoSlot, Child: event.NoSlot})
		}
		r := forward(t, f, b)
		<-time.After(time.Hour)
		if code, _ := f.Trouble(); code != event.BackendUnavailable {
			t.Errorf("the lane's trouble is %q, want %s", code, event.BackendUnavailable)
		}
		if p, since := f.Halted(); len(p) != 1 || p[0] != 0 || time.Since(since) < 50*time.Minute {
			t.Errorf("halted are %v since %v", p, since)
		}
		if n := f.Resume(); n != 1 { // an operator wants it: another hundred
			t.Errorf("%d partitions resumed", n)
		}
		<-time.After(time.Minute)
		if p, _ := f.Halted(); len(p) != 1 {
			t.Errorf("halted are %v", p)
		}
		sane.Store(true)
		waitDelivered(t, r)
		if got := len(r.Failed()); got != 2*mostInARow {
			t.Errorf("%d events given up, want %d", got, 2*mostInARow)
		}
		if p, _ := f.Halted(); len(p) != 0 || f.Resume() != 0 {
			t.Errorf("still halted are %v", p)
		}
		if got := len(data(t, m.sent())); got != 50 {
			t.Errorf("%d events delivered, want 50", got)
		}
	})
}

func TestRefusals(t *testing.T) {
	start := time.Unix(0, 0).Add(time.Hour)
	why := &SendError{Refused: true}
	allowed := func(r *refusals, now time.Time, between int) (n int) {
		for r.allow(now, why) == nil {
			if n++; n == 1000 {
				return n
			}
			r.confirmed(now, between)
		}
		return n
	}
	if got := allowed(&refusals{}, start, 99); got != 1000 {
		t.Errorf("at one in a hundred %d are given up, want no end", got)
	}
	var r refusals
	if got := allowed(&r, start, 50); got != mostInAWindow {
		t.Errorf("at one in fifty %d are given up, want %d", got, mostInAWindow)
	}
	if got := allowed(&r, start.Add(refusalWindow-1), 50); got != 0 {
		t.Errorf("%d more in the same window, want 0", got)
	}
	if got := allowed(&r, start.Add(refusalWindow), 50); got != 0 {
		t.Errorf("%d in the next window, want 0: it has stopped until the backend takes something", got)
	}
	r.confirmed(start.Add(refusalWindow), 1)
	if got := allowed(&r, start.Add(refusalWindow), 50); got != mostInAWindow {
		t.Errorf("%d when it goes on, want %d", got, mostInAWindow)
	}
}
