package forwardtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/internal/compress"
)

// Harness is a backend under test over a store that is empty. Its backend goes by Stream and Gateway.
type Harness struct {
	Backend forward.Backend
	Reopen  func() forward.Backend // over the same store, with nothing in memory, as after a restart
	Stored  func() []forward.Run   // what a reader finds, in the order of storing
	Checks  bool                   // what is stored is recognised: a run sent again is not stored twice
	Close   func()                 // takes the store, or the backend, away

	Refused     string     // an event that is refused alone, within a run of any others
	RefusedCode event.Code // why

	Full       func() (drain func()) // makes the store full until drain; nil: it never is
	LoseAnswer func()                // the next run is stored, but its answer is lost; nil: can't be had
	// Hang lets the next run have no answer, and not be stored; arrived is closed when it is there. nil: can't be had.
	Hang func() (arrived <-chan struct{})
}

// Run tests that a backend is as forward.Backend says. Each part gets a harness of its own.
func Run(t *testing.T, open func(t *testing.T) *Harness) {
	for name, part := range map[string]func(*testing.T, *Harness){
		"a confirmed run is read once and in order": readOnce,
		"a run sent again":                          sendAgain,
		"a new process goes on behind the old one":  goOn,
		"lanes at the same time":                    manyLanes,
		"the end of a context":                      endOfContext,
		"closed":                                    closed,
		"refused":                                   refused,
		"full":                                      full,
		"a lost answer":                             lostAnswer,
		"E07 behind a forwarder":                    behindForwarder,
	} {
		t.Run(name, func(t *testing.T) { part(t, open(t)) })
	}
}

func send(t *testing.T, b forward.Backend, runs ...*forward.Run) {
	t.Helper()
	for _, run := range runs {
		if err := b.Send(t.Context(), run); err != nil {
			t.Fatalf("send %s: %v", run.ID, err)
		}
	}
}

func (h *Harness) wantStored(t *testing.T, want ...*forward.Run) {
	t.Helper()
	got := h.Stored()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || !same(got[i], *want[i]) {
			t.Fatalf("stored %s, want %s", ids(got), ids(deref(want)))
		}
	}
}

func ids(runs []forward.Run) (all []string) {
	for _, run := range runs {
		all = append(all, fmt.Sprintf("%s (%d-%d, %d bytes)", run.ID, run.First, run.Last, len(run.Payload)))
	}
	return all
}

func deref(runs []*forward.Run) (all []forward.Run) {
	for _, run := range runs {
		all = append(all, *run)
	}
	return all
}

// wantError returns the SendError that err must be.
func wantError(t *testing.T, err error, refused bool, code event.Code) *forward.SendError {
	t.Helper()
	e, ok := errors.AsType[*forward.SendError](err)
	if !ok || e.Refused != refused || e.Code != code || e.Reason == "" {
		t.Fatalf("error %+v (%T), want a SendError with refused %v, code %s and a reason", err, err, refused, code)
	}
	return e
}

func readOnce(t *testing.T, h *Harness) {
	want := []*forward.Run{NewRun(0, 1, "a", "b"), NewRun(5, 1, "c"), NewRun(0, 3, "d"), NewRun(0, 4, "", "e")}
	zstd, err := compress.ByName("zstd")
	if err != nil {
		t.Fatal(err)
	}
	want[1].ContentEncoding, want[1].Payload = zstd.ContentEncoding(), zstd.Append(nil, want[1].Payload)
	send(t, h.Backend, want...)
	h.wantStored(t, want...)
}

func sendAgain(t *testing.T, h *Harness) {
	first, second := NewRun(0, 1, "a", "b"), NewRun(0, 3, "c")
	send(t, h.Backend, first, first, second, second)
	send(t, h.Reopen(), second)
	if h.Checks {
		h.wantStored(t, first, second)
		return
	}
	h.wantStored(t, first, first, second, second, second) // for a reader to tell by their ids
}

func goOn(t *testing.T, h *Harness) {
	resume := func(b forward.Backend) uint64 {
		last, err := b.Resume(t.Context(), 3)
		if err != nil {
			t.Fatal(err)
		}
		return last
	}
	begin := resume(h.Backend)
	first := NewRun(3, begin+1, "a", "b")
	send(t, h.Backend, first)
	b := h.Reopen()
	last := resume(b)
	if last < first.Last || h.Checks && begin == 0 && last != first.Last {
		t.Errorf("resumed at %d, the last number is %d", last, first.Last)
	}
	second := NewRun(3, last+1, "c")
	send(t, b, second)
	h.wantStored(t, first, second)
}

func manyLanes(t *testing.T, h *Harness) {
	const lanes, runs = 16, 20
	var all sync.WaitGroup
	for p := range int32(lanes) {
		all.Go(func() {
			for i := range uint64(runs) {
				run := NewRun(p, 2*i+1, fmt.Sprint(p, " ", i), "x")
				if err := h.Backend.Send(t.Context(), run); err != nil {
					t.Errorf("send %s: %v", run.ID, err)
				}
			}
		})
	}
	all.Wait()
	stored := h.Stored()
	if len(stored) != lanes*runs {
		t.Errorf("%d runs stored, want %d", len(stored), lanes*runs)
	}
	for p := range int32(lanes) {
		for i, run := range Lane(stored, p) {
			if want := fmt.Sprint(p, " ", i); Events(t, run)[0] != want {
				t.Fatalf("run %d of lane %d is %s", i, p, run.ID)
			}
		}
	}
}

func endOfContext(t *testing.T, h *Harness) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	run := NewRun(0, 1, "a")
	if err := h.Backend.Send(ctx, run); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
	if h.Hang != nil {
		arrived := h.Hang()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- h.Backend.Send(ctx, run) }()
		<-arrived
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("when the context ends: %v", err)
		}
	}
	send(t, h.Backend, run)
	if got := h.Stored(); len(got) == 0 || !same(got[len(got)-1], *run) {
		t.Errorf("stored %s, want %s", ids(got), run.ID)
	}
}

func closed(t *testing.T, h *Harness) {
	send(t, h.Backend, NewRun(0, 1, "a"))
	h.Close()
	wantError(t, h.Backend.Send(t.Context(), NewRun(0, 2, "b")), false, event.BackendUnavailable)
	wantError(t, h.Backend.Send(t.Context(), NewRun(1, 1, "b")), false, event.BackendUnavailable)
}

func refused(t *testing.T, h *Harness) {
	first, bad, next := NewRun(0, 1, "a"), NewRun(0, 2, "b", h.Refused), NewRun(0, 4, "c")
	send(t, h.Backend, first)
	wantError(t, h.Backend.Send(t.Context(), bad), true, h.RefusedCode)
	send(t, h.Backend, next)
	h.wantStored(t, first, next)
}

func full(t *testing.T, h *Harness) {
	if h.Full == nil {
		t.Skip("this backend is never full")
	}
	first, second := NewRun(0, 1, "a"), NewRun(0, 2, "b")
	send(t, h.Backend, first)
	drain := h.Full()
	for range 3 {
		wantError(t, h.Backend.Send(t.Context(), second), false, event.BackendFull)
	}
	drain()
	send(t, h.Backend, second)
	h.wantStored(t, first, second)
}

func lostAnswer(t *testing.T, h *Harness) {
	if h.LoseAnswer == nil {
		t.Skip("this backend's answers can't be lost here")
	}
	first, second := NewRun(0, 1, "a"), NewRun(0, 2, "b")
	h.LoseAnswer()
	for h.Backend.Send(t.Context(), first) != nil {
	}
	send(t, h.Backend, second)
	if h.Checks {
		h.wantStored(t, first, second)
		return
	}
	h.wantStored(t, first, first, second)
}
