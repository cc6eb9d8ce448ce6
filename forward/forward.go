package forward

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/headgate-io/headgate/event"
)

// Forward copies events into the lanes of their partitions: those at which, or all with the verdict Keep when
// which is nil. It never blocks for long, may be called concurrently, and afterwards needs nothing of the batch.
//
// It takes all or nothing: the error is an *event.Problem (overloaded, backend_full, backend_unavailable,
// draining), and then no event is taken. Events that were routed by a table older than their lane allows are not
// taken and come back as stale: the caller assigns them again and forwards them with the same receipt, for which
// their memory stays reserved.
func (f *Forwarder) Forward(ctx context.Context, b *event.Batch, r *Receipt, which []int32) (stale []int32, err error) {
	g := groups.Get().(*grouping)
	defer groups.Put(g)
	g.group(b, which, len(f.lanes))
	if len(g.order) == 0 {
		return nil, nil
	}
	f.gate.RLock()
	defer f.gate.RUnlock()
	if err := f.admit(ctx, r, g); err != nil {
		return nil, err
	}
	r.expect(len(g.order))
	in := intake{batch: b, receipt: r, due: time.Now().Add(f.linger(b.Ack)), newlines: g.newlines}
	for p, l := range f.lanes {
		if events := g.of(p); len(events) > 0 && !l.put(&in, events) {
			stale = append(stale, events...)
		}
	}
	if len(stale) > 0 {
		r.expect(-len(stale))
		r.kept += weightOf(b, stale)
	}
	r.used = r.used || len(stale) < len(g.order)
	return stale, nil
}

// admit reserves the memory of all the events, or says why there is none.
func (f *Forwarder) admit(ctx context.Context, r *Receipt, g *grouping) error {
	var p *event.Problem
	switch {
	case f.closed:
		p = &event.Problem{Code: event.Draining, Detail: "the stream is being closed; send the request again"}
	case ctx.Err() != nil:
		p = &event.Problem{Code: event.AckTimeout, Detail: "the request ended before its events were taken"}
	case !r.reserve(g.bytes):
		p = f.full(g)
	default:
		return nil
	}
	if r.used { // these are stale events; the others of the batch are on their way
		p.Stored = "unknown"
	}
	return p
}

// full says why the budget has no room: the backend takes nothing, or it takes less than comes in.
func (f *Forwarder) full(g *grouping) *event.Problem {
	for p, l := range f.lanes {
		if code := l.trouble.Load(); code != nil && len(g.of(p)) > 0 {
			return event.Problemf(*code, "the backend of stream %s takes nothing for partition %d and memory is full; retry later", f.cfg.Stream, p)
		}
	}
	return event.Problemf(event.Overloaded, "more events arrive than the backend of stream %s takes; retry later", f.cfg.Stream)
}

func (f *Forwarder) linger(asked event.Level) time.Duration {
	if asked > event.Accepted {
		return f.cfg.LingerWaiting
	}
	return f.cfg.LingerIdle
}

func weightOf(b *event.Batch, which []int32) (bytes int64) {
	for _, at := range which {
		bytes += weight(&b.Events[at])
	}
	return bytes
}

// grouping is the events of a Forward by partition.
type grouping struct {
	order []int32 // places of the events in the batch: by partition, and in order within one
	ends  []int32 // per partition: where its part of order ends
	bytes int64   // weight of all
	// newlines is set when one of the events contains '\n'. It is found here, where the events are read in the
	// order in which they lie in memory: looking while they are copied, lane by lane, costs three times as much.
	newlines bool
}

var groups = sync.Pool{New: func() any { return new(grouping) }}

// of returns the events of a partition.
func (g *grouping) of(p int) []int32 {
	if p == 0 {
		return g.order[:g.ends[0]]
	}
	return g.order[g.ends[p-1]:g.ends[p]]
}

// group fills g by a counting sort over n partitions.
func (g *grouping) group(b *event.Batch, which []int32, n int) {
	g.ends, g.bytes, g.newlines = zeroed(g.ends, n), 0, false
	total := 0
	each(b, which, func(at int32, e *event.Event) {
		if uint32(e.Partition) >= uint32(n) {
			panic(fmt.Sprintf("BUG: forward: an event for partition %d of %d", e.Partition, n))
		}
		g.ends[e.Partition]++
		g.bytes += weight(e)
		g.newlines = g.newlines || bytes.IndexByte(e.Data, '\n') >= 0
		total++
	})
	g.order = zeroed(g.order, total)
	start := int32(0)
	for p, count := range g.ends { // from counts to starts
		g.ends[p] = start
		start += count
	}
	each(b, which, func(at int32, e *event.Event) {
		g.order[g.ends[e.Partition]] = at
		g.ends[e.Partition]++ // from starts to ends, one by one
	})
}

// each calls do for the events at which, or for all that are kept.
func each(b *event.Batch, which []int32, do func(at int32, e *event.Event)) {
	if which != nil {
		for _, at := range which {
			do(at, &b.Events[at])
		}
		return
	}
	for i := range b.Events {
		if e := &b.Events[i]; e.Verdict == event.Keep {
			do(int32(i), e)
		}
	}
}

func zeroed(s []int32, n int) []int32 {
	if cap(s) < n {
		return make([]int32, n, n+n/4)
	}
	s = s[:n]
	clear(s)
	return s
}
