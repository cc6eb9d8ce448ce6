package forward

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/budget"
)

// block is an answer that ends with its context only.
func block(ctx context.Context, _ *Run) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestAcceptedDoesNotWait(t *testing.T) {
	f, err := New(config(1), &memory{answer: block}, Deps{}) // not even running
	if err != nil {
		t.Fatal(err)
	}
	if err := forward(t, f, batch(event.Accepted, "a")).Wait(t.Context(), event.Accepted); err != nil {
		t.Error(err)
	}
}

func TestDurableAndDeliveredWaitForTheBackend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		confirm := make(chan struct{})
		f := start(t, config(1), &memory{answer: func(context.Context, *Run) error { <-confirm; return nil }}, Deps{})
		for _, level := range []event.Level{event.Durable, event.Delivered} {
			r := forward(t, f, batch(level, "a"))
			done := make(chan error)
			go func() { done <- r.Wait(t.Context(), level) }()
			synctest.Wait()
			select {
			case err := <-done:
				t.Fatalf("%s: answered %v before the backend did", level, err)
			default:
			}
			confirm <- struct{}{}
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

// A receipt is settled when the last of its lanes is.
func TestReceiptWaitsForAllLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		confirm := make(chan struct{})
		f := start(t, config(2), &memory{answer: func(_ context.Context, run *Run) error {
			if run.Partition == 1 {
				<-confirm
			}
			return nil
		}}, Deps{})
		b := batch(event.Delivered, "a", "b")
		b.Events[1].Partition = 1
		r := forward(t, f, b)
		done := make(chan error, 1)
		go func() { done <- r.Wait(t.Context(), event.Delivered) }()
		synctest.Wait()
		if len(done) != 0 {
			t.Error("answered before the second lane was confirmed")
		}
		close(confirm)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// What Then was given is done when a Wait returns, and finds all failures; on a settled receipt it is done at once.
func TestThenComesBeforeWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		confirm := make(chan struct{})
		f := start(t, config(2), &memory{answer: func(_ context.Context, run *Run) error {
			<-confirm
			if run.Partition == 1 {
				return &SendError{Refused: true, Err: errors.New("no")}
			}
			return nil
		}}, Deps{})
		b := batch(event.Delivered, "a", "b")
		b.Events[1].Partition = 1
		r := forward(t, f, b)
		var told []int
		for range 2 {
			r.Then(func() { told = append(told, len(r.Failed())) })
		}
		synctest.Wait()
		if len(told) != 0 {
			t.Error("called before anything was confirmed")
		}
		close(confirm)
		if err := r.Wait(t.Context(), event.Delivered); err != nil {
			t.Error(err)
		}
		r.Then(func() { told = append(told, len(r.Failed())) })
		if !slices.Equal(told, []int{1, 1, 1}) || r.Stopped() != nil {
			t.Errorf("told %v, stopped %v", told, r.Stopped())
		}
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		confirm := make(chan struct{})
		f := start(t, config(1), &memory{answer: func(context.Context, *Run) error { <-confirm; return nil }}, Deps{})
		r := forward(t, f, batch(event.Delivered, "a"))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		wantCode(t, r.Wait(ctx, event.Delivered), event.AckTimeout, "unknown")
		close(confirm)
		if err := r.Wait(t.Context(), event.Delivered); err != nil { // it is still true later
			t.Error(err)
		}
		if err := r.Wait(ctx, event.Delivered); err != nil {
			t.Errorf("what is confirmed stays so, whatever the context: %v", err)
		}
	})
}

func TestForwardForARequestThatHasEnded(t *testing.T) {
	f := start(t, config(1), &memory{}, Deps{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := f.Forward(ctx, batch(event.Delivered, "a"), f.NewReceipt(), nil)
	wantCode(t, err, event.AckTimeout, "")
}

// Refused events are told by their place in the request; the events of other runs are not touched by it.
func TestRefusedEventsFailAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{answer: func(_ context.Context, run *Run) error {
			if run.Partition == 1 {
				return &SendError{Refused: true, Code: event.EventTooLarge, Err: errors.New("too large")}
			}
			return nil
		}}
		limit := budget.New(1 << 20)
		f := start(t, config(2), m, Deps{Budget: limit})
		b := batch(event.Delivered, "a", "b", "c", "d")
		b.Events[3].Partition, b.Events[1].Partition = 1, 1
		r := forward(t, f, b)
		waitDelivered(t, r)
		if got := fmt.Sprint(r.Failed()); got != "[{1 event_too_large false} {3 event_too_large false}]" {
			t.Errorf("failed %s, want events 1 and 3", got)
		}
		wantStrings(t, data(t, m.sent()), "a", "c")
		if m.tries != 4 {
			t.Errorf("%d sends, want 4: two runs, and the two events of the refused one", m.tries)
		}
		if limit.Held() != 0 {
			t.Errorf("%d bytes held, want 0", limit.Held())
		}
	})
}

func TestRefusedFramesAreToldApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{answer: func(_ context.Context, run *Run) error {
			if run.First <= 2 {
				return &SendError{Refused: true}
			}
			return nil
		}}
		cfg := config(1)
		cfg.FrameEvents, cfg.MaxRun = 2, 1 // a run a frame
		f := start(t, cfg, m, Deps{})
		b := batch(event.Delivered, "filtered", "b", "c")
		b.Events[0].Verdict = event.Filtered
		first, second := forward(t, f, batch(event.Delivered, "a")), forward(t, f, b)
		waitDelivered(t, first)
		waitDelivered(t, second)
		if got := fmt.Sprint(first.Failed(), second.Failed()); got != "[{0 backend_refused false}] [{1 backend_refused false}]" {
			t.Errorf("failed %s, want the first kept one of each", got)
		}
		got := m.sent()
		wantStrings(t, data(t, got), "c")
		if got[0].First != 3 {
			t.Errorf("the run after the refused one begins with number %d, want 3", got[0].First)
		}
	})
}

// TestF9WhoFindsTheBackendFullLearnsItSoon, instead of waiting for its deadline; what its events come to is not known yet,
// since the lane goes on trying.
func TestF9WhoFindsTheBackendFullLearnsItSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var room atomic.Bool
		m := &memory{answer: func(context.Context, *Run) error {
			if room.Load() {
				return nil
			}
			return &SendError{Code: event.BackendFull, After: 100 * time.Millisecond}
		}}
		f := start(t, config(1), m, Deps{})
		begin := time.Now()
		r := forward(t, f, batch(event.Durable, "a"))
		wantCode(t, r.Wait(t.Context(), event.Durable), event.BackendFull, "unknown")
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("it waited %v", took)
		}
		_, err := f.Forward(t.Context(), batch(event.Durable, "b"), f.NewReceipt(), nil)
		wantCode(t, err, event.BackendFull, "")
		settled := make(chan struct{})
		r.Then(func() { close(settled) })
		room.Store(true)
		<-settled
		if err := r.Stopped(); err != nil {
			t.Errorf("stored in the end, and yet %v", err)
		}
		if err := forward(t, f, batch(event.Durable, "c")).Wait(t.Context(), event.Durable); err != nil {
			t.Errorf("with room again: %v", err)
		}
	})
}
