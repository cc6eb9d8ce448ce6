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

	mu        sync.Mutex
	unsafe    stage    // events in the lanes that are neither in the spool nor confirmed nor given up
	pending   stage    // events in the lanes that are neither confirmed nor given up
	then      []func() // called when unsafe is 0, before anybody is woken
	telling   bool     // they are being called
	failed    []Failure
	stopped   bool // a hard stop has given up on events
	postponed bool // some of pending are not waited for any more: they are in the spool for longer
	full      bool // nor is anything of unsafe or pending: the backend has had no room for a while
}

// stage counts events on their way to some point.
type stage struct {
	left int
	done chan struct{} // made by a Wait that has to wait, closed when left is 0
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
// Failed. Accepted is reached when Forward returns; Durable when the spool has it, or the backend; Delivered is the
// backend's confirmation, at the level it declares. When ctx ends first, the backend stays full, or the forwarder is stopped, the error is an
// *event.Problem that says what is stored.
func (r *Receipt) Wait(ctx context.Context, level event.Level) error {
	r.budget.Release(r.kept)
	r.kept = 0
	if level <= event.Accepted {
		return nil
	}
	safe := r.reached(&r.unsafe)
	done := safe
	if level > event.Durable {
		done = r.reached(&r.pending)
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
	switch {
	case closed(done):
		return r.outcome(level)
	case closed(safe): // ctx ended first
		return notDelivered("the backend did not confirm in time")
	}
	return &event.Problem{Code: event.AckTimeout, Stored: event.StoredUnknown,
		Detail: "the events were not confirmed in time; send the request again: events that have ids, with the same ones"}
}

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// notDelivered is the outcome of a request that asked for delivered and got durable.
func notDelivered(why string) *event.Problem {
	return &event.Problem{Code: event.AckTimeout, Stored: event.StoredDurable,
		Detail: why + "; the events are safe and will be delivered: do not send them again"}
}

// Then has f called when every event of the batch that Forward took is durable or given up: at once, or later by
// another goroutine, which f must not keep. It comes after the last Forward; what it calls may ask Failed and Stopped.
func (r *Receipt) Then(f func()) {
	r.mu.Lock()
	waits := r.unsafe.left > 0
	if waits {
		r.then = append(r.then, f)
	}
	r.mu.Unlock()
	if !waits {
		f()
	}
}

// Stopped returns nil, or when a hard stop has given up on events the *event.Problem that says so.
func (r *Receipt) Stopped() error { return r.outcome(event.Durable) }

// Failed returns the events that were refused for good so far, by their place in the request.
func (r *Receipt) Failed() []Failure {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortFunc(r.failed, func(a, b Failure) int { return a.Index - b.Index })
	return slices.Clone(r.failed)
}

func (r *Receipt) reached(s *stage) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.done == nil {
		s.done = make(chan struct{})
		if s.left == 0 && !r.telling || r.full {
			close(s.done)
		}
	}
	return s.done
}

func (r *Receipt) outcome(level event.Level) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.stopped:
		return &event.Problem{Code: event.Draining, Stored: event.StoredUnknown,
			Detail: "the gateway stopped before the backend confirmed; send the request again: events that have ids, with the same ones"}
	case r.postponed && level > event.Durable:
		return notDelivered("the backend takes nothing at the moment")
	case r.full && r.unsafe.left == 0 && r.pending.left > 0 && level > event.Durable:
		return notDelivered("the backend has no room at the moment")
	case r.full && r.unsafe.left > 0:
		return &event.Problem{Code: event.BackendFull, Stored: event.StoredUnknown,
			Detail: "the backend has no room for these events, which are stored once it has; send the request again later with the same ids"}
	}
	return nil
}

// fill ends the wait for events that the backend has no room for, unless they are on their way into a spool.
func (r *Receipt) fill(spool bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if spool && r.unsafe.left > 0 {
		return
	}
	if r.full = true; !r.telling {
		r.wake()
	}
}

// expect announces n events that are about to enter the lanes; a negative n takes back those that did not.
func (r *Receipt) expect(n int) {
	r.mu.Lock()
	r.unsafe.left += n
	r.pending.left += n
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

// safe ends the wait for n events to be durable.
func (r *Receipt) safe(n int) {
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

// subtract takes n events off those that are not durable yet, and returns what is to be called before anybody is woken.
func (r *Receipt) subtract(n int) []func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unsafe.subtract(n) > 0 {
		return nil
	}
	then := r.then
	r.then, r.telling = nil, len(then) > 0
	if !r.telling {
		r.wake()
	}
	return then
}

// settle ends the wait for n events to be delivered, whose wait to be durable has ended.
func (r *Receipt) settle(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending.subtract(n) == 0 && !r.telling {
		r.wake()
	}
}

func (s *stage) subtract(n int) (left int) {
	s.left -= n
	if s.left < 0 {
		panic("BUG: forward: more events settled than were taken")
	}
	return s.left
}

// wake ends the waits that are over; r.mu is held.
func (r *Receipt) wake() {
	for _, s := range [...]*stage{&r.unsafe, &r.pending} {
		if (s.left == 0 || r.full) && s.done != nil && !closed(s.done) {
			close(s.done)
		}
	}
}

// detach ends the wait for n events that are durable, and for whose delivery nobody need wait.
func (r *Receipt) detach(n int) {
	r.mu.Lock()
	r.postponed = true
	r.mu.Unlock()
	r.settle(n)
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
	r.safe(n)
	r.settle(n)
}
