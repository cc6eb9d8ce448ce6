package forward

import (
	"bytes"
	"fmt"
	"slices"
	"sync"

	"github.com/headgate-io/headgate/event"
)

// grouping is the events of a Forward by partition.
type grouping struct {
	ack event.Level // that the request waits for

	order []int32 // places of the events in the batch: by partition, and in order within one
	ends  []int32 // per partition: where its part of order ends
	bytes int64   // weight of all
	// newlines is set when one of the events contains '\n'. It is found here, where the events are read in the
	// order in which they lie in memory: looking while they are copied, lane by lane, costs three times as much.
	newlines   bool
	noNewlines bool // there is no need to look

	places []int32 // the events in their order in the batch, and
	lanes  []uint8 // their partitions, so that sorting needs no second look at them
	parked []int32 // those that no lane may have yet; bytes has their weight too
}

var groups = sync.Pool{New: func() any { return new(grouping) }}

// mostGrouped is how many events a grouping keeps room for.
const mostGrouped = 16 << 10

func (g *grouping) giveBack() {
	if cap(g.order) <= mostGrouped {
		groups.Put(g)
	}
}

// of returns the events of a partition.
func (g *grouping) of(p int) []int32 {
	if p == 0 {
		return g.order[:g.ends[0]]
	}
	return g.order[g.ends[p-1]:g.ends[p]]
}

// group fills g with the events at which, or with those that are kept, by a counting sort over n partitions.
func (g *grouping) group(b *event.Batch, which []int32, n int) {
	g.ends = slices.Grow(g.ends[:0], n)[:n]
	clear(g.ends)
	g.places, g.lanes, g.parked, g.bytes, g.newlines, g.noNewlines = g.places[:0], g.lanes[:0], g.parked[:0], 0, false, b.NoNewlines
	if which == nil {
		for i := range b.Events {
			if e := &b.Events[i]; e.Verdict == event.Keep {
				g.add(b, int32(i))
			}
		}
	}
	for _, at := range which {
		g.add(b, at)
	}
	g.sort()
}

// add counts an event.
func (g *grouping) add(b *event.Batch, at int32) {
	e := &b.Events[at]
	if e.Partition == event.Parked {
		g.parked = append(g.parked, at)
		g.bytes += weight(b, e)
		return
	}
	if uint32(e.Partition) >= uint32(len(g.ends)) {
		panic(fmt.Sprintf("BUG: forward: an event for partition %d of %d", e.Partition, len(g.ends)))
	}
	g.ends[e.Partition]++
	g.places = append(g.places, at)
	g.lanes = append(g.lanes, uint8(e.Partition))
	g.bytes += weight(b, e)
	g.newlines = g.newlines || !g.noNewlines && bytes.IndexByte(e.Data, '\n') >= 0
}

// lanesUsed is how many partitions get events.
func (g *grouping) lanesUsed() (n int) {
	before := int32(0)
	for _, end := range g.ends {
		if end > before {
			n++
		}
		before = end
	}
	return n
}

// sort puts the counted events in order.
func (g *grouping) sort() {
	start := int32(0)
	for p, count := range g.ends { // from counts to starts
		g.ends[p] = start
		start += count
	}
	g.order = slices.Grow(g.order[:0], len(g.places))[:len(g.places)]
	for i, at := range g.places {
		end := &g.ends[g.lanes[i]] // from starts to ends, one by one
		g.order[*end] = at
		*end++
	}
}
