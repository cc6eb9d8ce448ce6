package partitioner

import (
	"fmt"
	"math"
	"time"
)

// elastic is what is remembered of the number of partitions.
type elastic struct {
	over    int // seconds in a row
	peak    float64
	until   time.Duration // no fewer before
	hold    time.Duration
	shrunk  time.Duration // when last
	joining int32         // a partition that is being filled + 1
}

// planSize lets the number of active partitions follow the load: the same band and holds as for keys.
func (n *planning) planSize() {
	n.tidy(n.now)
	if n.s.Max == 0 || n.s.Target == 0 {
		return
	}
	e, active := &n.size, len(n.table.active)
	total := 0.0
	for _, l := range n.partition {
		total += l
	}
	e.peak = max(total, e.peak*decay(ticksPerMove*n.load.Elapsed, peakHalfLife))
	e.over = inARow(e.over, total > splitSlow*n.s.Target*float64(active))
	need := min(int(math.Ceil(total/n.s.Target)), growBy*active, n.s.Max, len(n.table.slots)/slotsPerPartition)
	switch {
	case active < n.s.Min:
		n.enlarge(n.s.Min, "fewer than the least")
	case e.over >= ticksSlow && need > active:
		h := hold
		if e.hold > 0 && n.now-e.shrunk < holdsNear*e.hold {
			h = min(2*e.hold, longestHold)
		}
		e.hold, e.until, e.over = h, n.now+h, 0
		n.enlarge(need, fmt.Sprintf("%.0f/s on %d partitions, %.2f of the target", total, active, total/n.s.Target/float64(active)))
	case active > max(n.s.Min, 1) && e.peak < mergeBelow*n.s.Target*float64(active) && n.now >= e.until && !n.draining():
		e.shrunk, e.until = n.now, n.now+max(e.hold, hold)
		n.change(Change{Kind: DrainPartition, Partition: n.table.active[active-1],
			Reason: fmt.Sprintf("peak %.0f/s on %d partitions, %.2f of the target", e.peak, active, e.peak/n.s.Target/float64(active))})
	}
}

// enlarge makes it count active partitions: those that drain first, then new ones.
func (n *planning) enlarge(count int, reason string) {
	left := count - len(n.table.active)
	for p := int32(0); int(p) < len(n.table.partitions) && left > 0; p++ {
		if n.table.partitions[p].State == Draining {
			n.change(Change{Kind: ActivatePartition, Partition: p, Reason: reason})
			left--
		}
	}
	for p := len(n.table.partitions); left > 0 && p < MaxPartitions; p, left = p+1, left-1 {
		n.change(Change{Kind: AddPartition, Partition: int32(p), Weight: 1, Reason: reason})
	}
}

// draining reports whether a partition has still to be emptied.
func (n *planning) draining() bool {
	for _, s := range n.table.slots {
		if n.table.partitions[s.target].State == Draining {
			return true
		}
	}
	for _, s := range n.table.splits.all {
		for _, c := range s.children {
			if n.table.partitions[c.target].State == Draining {
				return true
			}
		}
	}
	return false
}

// fill gives a new partition its share, and reports whether there is one: nothing moves between the others meanwhile.
func (m *moves) fill() bool {
	counts := make([]int, len(m.table.partitions))
	for _, s := range m.table.slots {
		counts[s.target]++
	}
	shares := m.table.shares()
	for _, p := range m.table.active {
		if m.guards.closed(p, m.now) || counts[p] >= shares[p]/2 || !m.joining(p, counts[p]) {
			continue
		}
		for _, id := range m.table.Claim(p) {
			from := int32(m.table.slots[id].owner)
			if m.pending[id] || m.now < m.rest[id] || m.backlog(from, Heavy{}) {
				continue
			}
			if !m.move(id, from, p, fmt.Sprintf("partition %d is new and has %d of %d slots", p, counts[p], shares[p])) {
				break
			}
		}
		return true
	}
	return false
}

// joining reports whether partition p is new: it has nothing, or was being filled.
func (m *moves) joining(p int32, count int) bool {
	if count == 0 {
		m.size.joining = p + 1
	}
	return m.size.joining == p+1
}

// empty moves what a draining partition has, and reports whether there is one.
func (m *moves) empty() bool {
	if !m.draining() {
		return false
	}
	for i, s := range m.table.slots {
		if id := int32(i); m.table.partitions[s.target].State == Draining && s.owner == s.target && !m.pending[id] && !m.backlog(int32(s.owner), Heavy{}) {
			to := m.emptiestTo()
			if to == noPartition || !m.move(id, int32(s.owner), to, fmt.Sprintf("partition %d drains", s.owner)) {
				return true
			}
		}
	}
	for i := range m.table.splits.all {
		m.emptyKey(&m.table.splits.all[i])
	}
	return true
}

// emptyKey moves the children of a key from draining partitions to ones where it has none.
func (m *moves) emptyKey(s *split) {
	taken := map[int32]bool{}
	for _, c := range s.children {
		taken[int32(c.owner)], taken[int32(c.target)] = true, true
	}
	for _, c := range s.children {
		if m.table.partitions[c.target].State != Draining || c.owner != c.target || m.changed[[2]uint64{s.hi, s.lo}] || m.backlog(int32(c.owner), Heavy{}) {
			continue
		}
		best := noPartition
		for _, p := range m.table.active {
			if !taken[p] && !m.guards.closed(p, m.now) && (best == noPartition || m.relative(p) < m.relative(best)) {
				best = p
			}
		}
		if best == noPartition {
			m.once("no_room", "no_room: key %016x%016x has a child on every active partition, %d cannot be emptied before it is merged", s.hi, s.lo, c.owner)
			return
		}
		if !m.move(c.id, int32(c.owner), best, fmt.Sprintf("partition %d drains", c.owner)) {
			return
		}
		taken[best] = true
	}
}
