package ingest

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/problem"
	"github.com/headgate-io/headgate/sdk/session"
)

// flight is the events of one EVENTS frame from when they are handed over until their outcome is said.
type flight struct {
	head session.EventsHead
	size int64 // of the frame's payload: the credit that it has used

	entered chan struct{} // closed when its events are in the lanes, or will not be
	durable chan struct{} // closed when they are durable and more is waited for
	done    chan struct{} // closed when the outcome is known

	enter, safe, finish sync.Once
	safely              func() // Batch.Safe; nil: nobody asks

	no     *event.Problem // set before entered is closed: nothing of it was taken, it can be tried again
	lost   *event.Problem // set before done is closed: the outcome will never be known
	level  event.Level    // that was reached
	frames []byte         // REJECT and RESULT
	result int            // where in them RESULT begins

	of     *stretch // of a session at accepted, guarded by its sessions' mu, as the next
	stored bool     // it is durable
	missed bool     // its outcome is lost
}

func newFlight(h session.EventsHead, size int64) *flight {
	return &flight{head: h, size: size, entered: make(chan struct{}), durable: make(chan struct{}), done: make(chan struct{})}
}

func (f *flight) last() uint64 { return f.head.First + f.head.Count - 1 }

// reached is Batch.Reached.
func (f *flight) reached(l event.Level) {
	if l == event.Accepted {
		f.enter.Do(func() { close(f.entered) })
	} else {
		f.safe.Do(func() { close(f.durable) })
	}
}

// end is called once the outcome is known, or that it never will be.
func (f *flight) end(set func()) {
	f.finish.Do(func() {
		set()
		f.enter.Do(func() { close(f.entered) })
		close(f.done)
	})
}

// fly hands a decoded batch over and waits for its outcome. It gives w back unless nothing was taken, when it is tried
// again.
func (f *flight) fly(c *core, ctx context.Context, p *plan, w *work) {
	defer func() {
		if bug := recover(); bug != nil { // w is left to the garbage collector: somebody may still read it
			c.log.Error("panic in a session", "panic", fmt.Sprint(bug), "stack", string(debug.Stack()))
			w.account.close()
			f.end(func() { f.lost = event.Problemf(event.Internal, "an error of the gateway, named in its log") })
		}
	}()
	b := &w.batch
	b.Reached, b.Late = f.reached, func(late *event.Batch, err error) { f.conclude(c, p, late, err) }
	b.Safe = f.safely
	var err error
	if b.Counts().Rejected < len(b.Events) {
		wait := &deadline{Context: ctx, until: w.account.until}
		err = p.stream.Accept(wait, b)
		wait.end()
		c.name(p)
	} else if f.safely != nil {
		f.safely()
	}
	no, unknown := (*event.Problem)(nil), false
	if err != nil {
		known, ok := errors.AsType[*event.Problem](err)
		unknown = ok && known.Stored == event.StoredUnknown // Late says more
		no = c.notAccepted(err)
	}
	select {
	case <-f.entered:
	default:
		if no != nil && !unknown {
			f.end(func() { f.no = no })
			return
		}
	}
	if !unknown {
		f.conclude(c, p, b, err)
	}
	w.give()
}

// conclude says what has become of each event of b.
func (f *flight) conclude(c *core, p *plan, b *event.Batch, err error) {
	f.end(func() {
		f.level = p.ack
		if err != nil {
			no := c.notAccepted(err)
			if no.Stored != event.StoredDurable {
				f.lost = no
				return
			}
			f.level = event.Durable
		}
		f.describe(b, p.counters.batch(b))
	})
}

// describe makes REJECT frames for the events that are named, and RESULT.
func (f *flight) describe(b *event.Batch, n event.Counts) {
	var dst []byte
	for _, e := range b.Errors {
		kind, _ := problem.Of(e.Code)
		dst = (&session.Reject{Seq: f.head.First + uint64(e.Index), Retryable: kind.Retryable, Code: string(e.Code), Detail: e.Detail}).Append(dst)
	}
	f.result = len(dst)
	f.frames = (&session.Result{First: f.head.First, Count: f.head.Count, Level: session.Level(f.level), Accepted: uint64(n.Accepted),
		Filtered: uint64(n.Filtered), Rejected: uint64(n.Rejected), Duplicates: uint64(n.Duplicates), DeadLettered: uint64(n.DeadLettered)}).Append(dst)
}
