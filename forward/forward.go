package forward

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/headgate-io/headgate/event"
)

// Forward copies events into the lanes of their partitions: those at which, or all with the verdict Keep when
// which is nil. It never blocks for long, may be called concurrently, and afterwards needs nothing of the batch.
//
// It takes all or nothing: the error is an *event.Problem (overloaded, backend_full, backend_unavailable,
// draining), and then no event is taken. Events that were routed by a table older than their lane allows, and those
// that are parked, are not taken and come back as stale: the caller assigns them again by a newer table and forwards them
// with the same receipt, for which their memory stays reserved.
func (f *Forwarder) Forward(ctx context.Context, b *event.Batch, r *Receipt, which []int32) (stale []int32, err error) {
	g := groups.Get().(*grouping)
	defer g.giveBack()
	g.group(b, which, len(f.lanes))
	if len(g.order)+len(g.parked) == 0 {
		return nil, nil
	}
	in := intake{batch: b, receipt: r, newlines: g.newlines}
	if which == nil { // of stale events, which are rare, it is not charged again: they must find room
		in.weight = requestWeight(b)
		g.bytes += in.weight * int64(g.lanesUsed())
	}
	f.gate.RLock()
	defer f.gate.RUnlock()
	g.ack = b.Ack
	if err := f.admit(ctx, r, g); err != nil {
		return nil, err
	}
	r.expect(len(g.order))
	if !r.used {
		r.batch, r.producer = b.ID, string(b.Producer)
	}
	now := time.Now()
	in.due = now.Add(f.linger(b.Ack))
	for p, l := range f.lanes {
		if events := g.of(p); len(events) > 0 && !l.put(&in, events) {
			stale = append(stale, events...)
			f.budget.Release(in.weight)
		}
	}
	if f.round != nil && b.Ack > event.Accepted {
		f.round.request(now)
	}
	if len(stale) > 0 {
		r.expect(-len(stale))
	}
	r.used = r.used || len(stale) < len(g.order)
	if len(g.parked) > 0 { // they stay in the order in which they came
		stale = append(stale, g.parked...)
		slices.Sort(stale)
	}
	r.kept += weightOf(b, stale)
	return stale, nil
}

// intake is the part of a Forward that is the same for all its lanes.
type intake struct {
	batch    *event.Batch
	receipt  *Receipt
	due      time.Time // when the events are to be sealed at the latest
	newlines bool      // some of the events contain '\n'
	weight   int64     // what a lane is charged for the request, once
}

// newline tells whether the event contains '\n'.
func (in *intake) newline(e *event.Event) bool {
	return in.newlines && bytes.IndexByte(e.Data, '\n') >= 0
}

// admit reserves the memory of all the events, or says why there is none.
func (f *Forwarder) admit(ctx context.Context, r *Receipt, g *grouping) error {
	var p *event.Problem
	switch {
	case f.closed:
		p = &event.Problem{Code: event.Draining, Detail: "the stream is being closed; send the request again"}
	case ctx.Err() != nil:
		p = &event.Problem{Code: event.AckTimeout, Detail: "the request ended before its events were taken"}
	case !r.used && f.room != nil && errors.As(f.room(), &p):
	case !r.used && (f.spool == nil || g.ack > event.Durable) && f.backendFull(): // else the spool takes it
		p = event.Problemf(event.BackendFull, "the backend of stream %s has no room; retry later", f.cfg.Stream)
	case !f.reserve(r, g.bytes):
		p = f.noMemory(g)
	default:
		return nil
	}
	if r.used { // these are stale events; the others of the batch are on their way
		p.Stored = event.StoredUnknown
	}
	return p
}

// reserve takes memory; for want of it, lanes drop what the spool has.
func (f *Forwarder) reserve(r *Receipt, n int64) bool {
	if r.reserve(n) {
		return true
	}
	f.relieve()
	return r.reserve(n)
}

// backendFull reports whether the backend has answered a lane for a while that it has no room. That lane holds what it could not
// store and goes on trying, so that this ends by itself; to put more into the lanes would only delay the answer. All
// lanes count: they share the room that a backend gives to a stream.
func (f *Forwarder) backendFull() bool {
	for _, l := range f.lanes {
		if t := l.trouble.Load(); t != nil && t.code == event.BackendFull && time.Since(t.since) >= fullPatience {
			return true
		}
	}
	return false
}

// noMemory says why the budget has no room: the backend takes nothing, or it takes less than comes in.
func (f *Forwarder) noMemory(g *grouping) *event.Problem {
	for p, l := range f.lanes {
		if t := l.trouble.Load(); t != nil && len(g.of(p)) > 0 {
			return event.Problemf(t.code, "the backend of stream %s takes nothing for partition %d and memory is full; retry later", f.cfg.Stream, p)
		}
	}
	switch most := f.budget.Most(); {
	case g.bytes > most:
		p := event.Problemf(event.RequestTooLarge, "the events need more than the %d bytes of memory that a stream may have in its lanes, "+
			"which depend on the setting memory; send less at once", most)
		p.Scope, p.Limit, p.Observed = "lanes", most, g.bytes
		return p
	case f.budget.Held()+g.bytes <= f.budget.Limit():
		return event.Problemf(event.Overloaded, "the memory for events on their way is full of those of other streams; retry later")
	}
	return event.Problemf(event.Overloaded, "more events arrive than the backend of stream %s takes; retry later", f.cfg.Stream)
}

// linger returns the age at which events are sealed that came with such a request, unless their round comes sooner. While the
// spool takes long to write the round before, they are for the backend in the end.
func (f *Forwarder) linger(asked event.Level) time.Duration {
	switch {
	case asked <= event.Accepted:
		return f.cfg.LingerIdle
	case f.round != nil && asked == event.Durable:
		return f.cfg.LingerWaiting + pace
	}
	return f.cfg.LingerWaiting
}

// Waiting returns how many events were taken that the backend has not confirmed, those that are in the spool among them.
func (f *Forwarder) Waiting() (events int) {
	for _, l := range f.lanes {
		c := l.snapshot()
		events += c.open + c.sealed + c.inflight + c.spooled
	}
	return events
}
