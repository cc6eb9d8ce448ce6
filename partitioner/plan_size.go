package partitioner

import (
	"fmt"
	"math"
	"time"
)

// elastic is what is remembered of the number of partitions.
type elastic struct {
	began   bool
	over    int // seconds in a row
	peak    float64
	until   time.Duration // no fewer before
	hold    time.Duration
	shrunk  time.Duration // when last
	joining int32         // a partition that is being filled + 1
}

// shrinkTo is how full the partitions that are left may be by the peak of the load: far enough from growth again.
const shrinkTo = 0.8

// Elastic tells whether the number of partitions follows the load.
func (s *Settings) Elastic() bool { return s.Max > 0 && s.Target > 0 }

// Settled reports whether a stream without load has nothing to change: no key is split or limited, it has as few partitions as
// it may have, and none is still to be emptied.
func (p *Planner) Settled(t *Table) bool {
	n := planning{Planner: p, table: t}
	return len(t.splits.all)+len(p.limits) == 0 && (p.s.Max == 0 || len(t.active) == max(p.s.Min, 1)) && !n.draining()
}

// planSize lets the number of active partitions follow the load: the same band and holds as for keys.
func (n *planning) planSize() {
	n.tidy(n.now)
	e, active := &n.size, len(n.table.active)
	if n.s.Max == 0 {
		return
	}
	if active < n.s.Min { // also of a definition that has changed
		n.enlarge(n.s.Min, fmt.Sprintf("%d partitions, the least is %d", active, n.s.Min))
		return
	}
	if active > n.s.Max && !n.draining() {
		n.drain(n.s.Max, fmt.Sprintf("%d partitions, the most is %d", active, n.s.Max))
		return
	}
	if !n.s.Elastic() {
		return
	}
	total := n.loads.keyless()
	for _, l := range n.partition {
		total += l
	}
	if !e.began { // who plans has just begun: producers may not be back yet
		e.began, e.until = true, n.now+n.s.Hold
	}
	e.peak = max(total, e.peak*decay(ticksPerMove*n.load.Elapsed, n.s.Hold))
	e.over = inARow(e.over, total > splitSlow*n.s.Target*float64(active))
	need := min(int(math.Ceil(total/n.s.Target)), growBy*active, n.s.Max, len(n.table.slots)/slotsPerPartition)
	least := max(n.s.Min, 1, int(math.Ceil(e.peak/(shrinkTo*n.s.Target))), active-max(1, active/4))
	switch {
	case e.over >= ticksSlow && need > active:
		h := n.s.Hold
		if e.hold > 0 && n.now-e.shrunk < holdsNear*e.hold {
			h = min(2*e.hold, longestHold)
		}
		e.hold, e.until, e.over = h, n.now+h, 0
		n.enlarge(need, fmt.Sprintf("%.0f/s on %d partitions, %.2f of the target", total, active, total/n.s.Target/float64(active)))
	case active > least && e.peak < mergeBelow*n.s.Target*float64(active) && n.now >= e.until && !n.draining():
		e.shrunk, e.until = n.now, n.now+max(e.hold, n.s.Hold)
		n.drain(least, fmt.Sprintf("peak %.0f/s on %d partitions, %.2f of the target", e.peak, active, e.peak/n.s.Target/float64(active)))
	}
}

// drain leaves count partitions active, those with the lowest ids.
func (n *planning) drain(count int, reason string) {
	for i := len(n.table.active) - 1; i >= count; i-- {
		n.change(Change{Kind: DrainPartition, Partition: n.table.active[i], Reason: reason})
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
	if len(n.table.active) == len(n.table.partitions) {
		return false
	}
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
		if m.guards.closed(p, m.now) || !m.joining(p, counts[p], shares[p]) {
			continue
		}
		for _, id := range m.table.Claim(p) {
			from := int32(m.table.slots[id].owner)
			if m.pending[id] || m.backlog(from, Heavy{}) { // a rest does not count: the number of partitions has holds of its own
				continue
			}
			if !m.resize(id, from, p, fmt.Sprintf("partition %d is new and has %d of %d slots", p, counts[p], shares[p])) {
				break
			}
		}
		return true
	}
	return false
}

// joining reports whether partition p is new and has not got its share yet: it has nothing, or was being filled, or, for one
// who plans from now on, looks like it. One that has few slots because one of them is heavy, or was, does not: what is even is
// what moves can reach, and not the mean, of which a key that can't be divided may have most.
func (m *moves) joining(p int32, count, share int) bool {
	if (count == 0 || m.s.Min < m.s.Max && 2*count < share) && 2*m.partition[p] < m.limit(p, 1) {
		m.size.joining = p + 1
	}
	if m.size.joining == p+1 && count >= share { // moves may take some of it again
		m.size.joining = 0
	}
	return m.size.joining == p+1
}

// Moves that fill a new partition or empty one that drains come to an end, and until then partitions have more than they are
// meant to. So they cost little of the budget; but what they hold back at a time is bounded.
const (
	resizeCost = 0.05     // of the price of a move
	resizeStep = 1.0 / 16 // of the slots, in one step
)

// resize plans such a move.
func (m *moves) resize(id, from, to int32, reason string) bool {
	if m.resized++; float64(m.resized) > max(1, resizeStep*float64(len(m.table.slots))) {
		return false
	}
	cost := resizeCost
	if m.s.Max == 0 { // nothing says that there will be an end
		cost = 1
	}
	if !m.spend(m.loadOf(id), cost) {
		return false
	}
	m.shift(Change{Kind: MoveSlot, Slot: id, Partition: from, To: to, Reason: reason})
	return true
}

// empty moves what a draining partition has, and reports whether there is one.
func (m *moves) empty() bool {
	if !m.draining() {
		return false
	}
	for i, s := range m.table.slots {
		if id := int32(i); m.table.partitions[s.target].State == Draining && s.owner == s.target && !m.pending[id] && !m.backlog(int32(s.owner), Heavy{}) {
			to := m.emptiestTo()
			if to == noPartition || !m.resize(id, int32(s.owner), to, fmt.Sprintf("partition %d drains", s.owner)) {
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
			m.fold(s, int32(c.owner))
			return
		}
		if !m.resize(c.id, int32(c.owner), best, fmt.Sprintf("partition %d drains", c.owner)) {
			return
		}
		taken[best] = true
	}
}

// fold merges a key that has a child on every active partition and one on a partition that drains. When it is still heavy it is
// split again over those that are left, without being held for longer.
func (m *moves) fold(s *split, draining int32) {
	if parent := &m.table.slots[s.hi>>m.table.shift]; parent.owner != parent.target || m.pending[int32(s.hi>>m.table.shift)] {
		return
	}
	for _, c := range s.children {
		if c.owner != c.target || m.goes[c.id] != 0 || m.backlog(int32(c.owner), Heavy{Hi: s.hi, Lo: s.lo}) {
			return
		}
	}
	m.change(Change{Kind: MergeKey, Hi: s.hi, Lo: s.lo, Reason: fmt.Sprintf("partition %d drains, and the key is on every other one", draining)})
	m.changed[[2]uint64{s.hi, s.lo}] = true
	rate := 0.0
	for _, c := range s.children {
		rate += m.loads.child(c.id)
	}
	m.loads.carry(int32(s.hi>>m.table.shift), -rate)
}
