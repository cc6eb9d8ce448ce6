package forward

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/headgate-io/headgate/event"
)

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
