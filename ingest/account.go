package ingest

import (
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/budget"
)

// account is what one request has reserved of the memory budget, and whether it has its turn to be decoded. It pays for
// the request's batch.
type account struct {
	budget *budget.Budget
	held   int64
	never  int64 // what the last refused reservation would have come to, if that is more than there is at all

	heavy *heavy // nil: everybody decodes as they like
	turn  bool   // it is one of those
	until time.Time
}

func (a *account) reserve(n int64) bool {
	if !a.budget.Reserve(n) {
		if a.never = 0; a.held+n > a.budget.Limit() {
			a.never = a.held + n
		}
		return false
	}
	a.held += n
	return true
}

// Pay implements event.Payer.
func (a *account) Pay(n int64) *event.Problem {
	if a.reserve(n) {
		return nil
	}
	return a.refused()
}

// Refund implements event.Payer.
func (a *account) Refund(n int64) { a.free(n) }

// refused says why the last reservation was.
func (a *account) refused() *event.Problem {
	if a.never == 0 {
		return overloaded()
	}
	p := event.Problemf(event.RequestTooLarge, "the request, its events and their attributes need more than the %d bytes of memory that there are "+
		"for requests (half of the setting memory); send less at once", a.budget.Limit())
	p.Scope, p.Limit, p.Observed = "memory", a.budget.Limit(), a.never
	return p
}

// lend leaves n of the bytes reserved to who answers, for as long as the answer is not sent.
func (a *account) lend(n int64) int64 {
	a.held -= n
	return n
}

// free gives back n bytes, close all of them and the turn.
func (a *account) free(n int64) {
	a.held -= n
	a.budget.Release(n)
}

func (a *account) close() {
	a.rest()
	a.free(a.held)
}

// What makes a body large: bytes after its codings, or events.
const (
	heavyBytes  = 1 << 20
	heavyEvents = 4 << 10
)

// heavy are the turns of requests with large bodies: few are decoded at a time, so that those with small ones need not
// wait until a processor has done with many others.
type heavy struct{ turns chan struct{} }

func newHeavy(n int) *heavy { return &heavy{make(chan struct{}, n)} }

// wait waits for the request's turn to decode a large body, which it keeps until rest.
func (a *account) wait() *event.Problem {
	if a.heavy == nil || a.turn {
		return nil
	}
	select {
	case a.heavy.turns <- struct{}{}:
		a.turn = true
		return nil
	default:
	}
	timer := time.NewTimer(time.Until(a.until))
	defer timer.Stop()
	select {
	case a.heavy.turns <- struct{}{}:
		a.turn = true
		return nil
	case <-timer.C:
		return event.Problemf(event.Overloaded, "large bodies of others were decoded until the request's time was over; send it again later")
	}
}

// heavily is wait for who returns an error.
func (a *account) heavily() error {
	if p := a.wait(); p != nil {
		return p
	}
	return nil
}

// rest ends the turn.
func (a *account) rest() {
	if a.turn {
		<-a.heavy.turns
		a.turn = false
	}
}
