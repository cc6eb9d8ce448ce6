package forward

import (
	"context"
	"slices"
	"sync"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/budget"
)

// Receipt is what a request waits on: how far the events of one batch have come. One goroutine uses it, the
// one that serves the request, and ends with a Wait of whatever level.
type Receipt struct {
	budget *budget.Budget
	kept   int64 // reserved bytes of stale events, so that forwarding them again can't fail for want of memory
	used   bool  // some of the batch is in the lanes

	batch, producer string // of the request, fixed once used

	mu      sync.Mutex
	pending int           // events in the lanes that are neither confirmed nor given up
	settled chan struct{} // made by a Wait that has to wait, closed when pending is 0
	then    []func()      // called when pending is 0, before anybody is woken
	telling bool          // they are being called
	failed  []Failure
	stopped bool // a hard stop has given up on events
}

// Failure is an event that the backend refused for good.
type Failure struct {
	Index  int // position in the request
	Code   event.Code
	Buried bool // it is safe in the dead letter
}

// NewReceipt returns the receipt for one batch.
func (f *Forwarder) NewReceipt() *Receipt { return &Receipt{budget: f.budget} }

// Wait returns nil when every event of the batch that Forward took has come as far as level or is listed by
// Failed. Accepted is reached when Forward returns. Durable and Delivered are both the backend's confirmation,
// at the level it declares. When ctx ends first, or the forwarder is stopped hard, the error is an
// *event.Problem that says that what is stored is unknown.
func (r *Receipt) Wait(ctx context.Context, level event.Level) error {
	r.budget.Release(r.kept)
	r.kept = 0
	if level <= event.Accepted {
		return nil
	}
	done := r.done()
	select {
	case <-done:
	case <-ctx.Done():
	}
	select {
	case <-done:
		return r.outcome()
	default: // ctx ended first
		return &event.Problem{Code: event.AckTimeout, Stored: "unknown",
			Detail: "the backend did not confirm in time; send the request again with the same ids"}
	}
}

// Then has f called when every event of the batch that Forward took is confirmed or given up: at once, or later by the
// goroutine of a lane, which f must not keep. It comes after the last Forward; what it calls may ask Failed and Stopped.
func (r *Receipt) Then(f func()) {
	r.mu.Lock()
	waits := r.pending > 0
	if waits {
		r.then = append(r.then, f)
	}
	r.mu.Unlock()
	if !waits {
		f()
	}
}

// Stopped returns nil, or when a hard stop has given up on events the *event.Problem that says so.
func (r *Receipt) Stopped() error { return r.outcome() }

// Failed returns the events that were refused for good so far, by their place in the request.
func (r *Receipt) Failed() []Failure {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortFunc(r.failed, func(a, b Failure) int { return a.Index - b.Index })
	return slices.Clone(r.failed)
}

func (r *Receipt) done() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.settled == nil {
		r.settled = make(chan struct{})
		if r.pending == 0 && !r.telling {
			close(r.settled)
		}
	}
	return r.settled
}

func (r *Receipt) outcome() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return &event.Problem{Code: event.Draining, Stored: "unknown",
			Detail: "the gateway stopped before the backend confirmed; send the request again with the same ids"}
	}
	return nil
}

// expect announces n events that are about to enter the lanes; a negative n takes back those that did not.
func (r *Receipt) expect(n int) {
	r.mu.Lock()
	r.pending += n
	r.mu.Unlock()
}

// reserve takes n bytes for events, of which earlier stale ones may have brought their own.
func (r *Receipt) reserve(n int64) bool {
	if n > r.kept && !r.budget.Reserve(n-r.kept) {
		return false
	}
	r.kept = max(r.kept-n, 0)
	return true
}

// settle ends the wait for n events.
func (r *Receipt) settle(n int) {
	then := r.subtract(n)
	if len(then) == 0 {
		return
	}
	for _, f := range then {
		f()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.telling = false
	r.wake()
}

// subtract takes n events off those that are waited for, and returns what is to be called before anybody is woken.
func (r *Receipt) subtract(n int) []func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending -= n
	if r.pending < 0 {
		panic("BUG: forward: more events settled than were taken")
	}
	if r.pending > 0 {
		return nil
	}
	then := r.then
	r.then, r.telling = nil, len(then) > 0
	if !r.telling {
		r.wake()
	}
	return then
}

// wake ends the wait; r.mu is held.
func (r *Receipt) wake() {
	if r.settled != nil {
		close(r.settled)
	}
}

// fail lists an event as refused; settle counts it.
func (r *Receipt) fail(index int32, why refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = append(r.failed, Failure{Index: int(index), Code: why.code, Buried: why.buried})
}

// abandon ends the wait for n events of which nobody can say whether they are stored.
func (r *Receipt) abandon(n int) {
	r.mu.Lock()
	r.stopped = true
	r.mu.Unlock()
	r.settle(n)
}
