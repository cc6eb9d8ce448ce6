package partitioner

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"
)

// planKeys splits keys that are too big, lets split ones grow, and merges those that are small again; the heaviest
// first, each knowing what was planned for those before it.
func (n *planning) planKeys() {
	next := n.table.nextChild
	room := maxChildren
	for _, s := range n.table.splits.all {
		room -= len(s.children)
	}
	for _, st := range n.keys {
		st.seen = false
	}
	defer func() { n.ordering = n.s.Ordering }()
	for _, k := range n.load.Heavy.Keys {
		n.ordering = n.orderingOf(k.Class)
		if k.Upper < mergeBelow*n.threshold && n.table.splits.find(k.Hi, k.Lo) == nil {
			continue // not near anything: nothing is remembered of it
		}
		st := n.state(k)
		var born int
		if s := n.table.splits.find(k.Hi, k.Lo); s != nil {
			born = n.grow(s, k, next, room)
		} else {
			born = n.split(k, st, next, room)
		}
		next, room = next+int32(born), room-born
	}
	n.room = room
	for i := range n.table.splits.all {
		n.merge(&n.table.splits.all[i])
	}
	for id, st := range n.keys {
		if !st.seen && n.table.splits.find(id[0], id[1]) == nil {
			delete(n.keys, id)
		}
	}
}

// state brings up to date what is remembered of a key.
func (n *planning) state(k Heavy) *keyState {
	id := [2]uint64{k.Hi, k.Lo}
	st := n.keys[id]
	if st == nil {
		st = &keyState{}
		n.keys[id] = st
	}
	st.seen = true
	st.peak = max(k.Upper, st.peak*decay(n.load.Elapsed, n.s.Hold))
	st.fast, st.slow = inARow(st.fast, k.Fast > splitFast*n.threshold), inARow(st.slow, k.Lower > splitSlow*n.threshold)
	return st
}

func inARow(count int, again bool) int {
	if again {
		return count + 1
	}
	return 0
}

// split returns how many children are born.
func (n *planning) split(k Heavy, st *keyState, next int32, room int) int {
	rate := max(k.Fast, k.Lower)
	slot := int32(k.Hi >> n.table.shift)
	at := int32(n.table.slots[slot].target)
	switch {
	case n.ordering == Strict || st.fast < ticksFast && st.slow < ticksSlow:
		return 0
	case n.solid[at] < busy*n.capacity && n.imbalance() <= unbalanced:
		return 0 // it hurts nobody: what spread keys bring flows elsewhere
	case n.table.slots[slot].owner != n.table.slots[slot].target:
		return 0 // first one, then the other
	case n.backlog(at, k):
		return 0
	}
	on := n.candidates(nil, rate, min(growBy, room))
	if len(on) < 2 {
		return 0
	}
	terms := SplitTerms{Spread: n.ordering == Unordered, Born: n.now, Hold: n.holdOf(k), Class: k.Class}
	n.change(Change{Kind: SplitKey, Hi: k.Hi, Lo: k.Lo, Partitions: on, Terms: terms, Reason: fmt.Sprintf(
		"fast %.2f T, slow %.2f T, T %.0f/s, partition %d at %.2f C", k.Fast/n.threshold, k.Lower/n.threshold, n.threshold, at, n.partition[at]/n.capacity)})
	moved := min(rate, n.loads.slot(slot))
	n.partition[at] -= moved
	n.solid[at] -= moved
	if terms.Spread {
		n.fluids = append(n.fluids, fluid{hi: k.Hi, lo: k.Lo, on: slices.Clone(on), load: slices.Repeat([]float64{rate / float64(len(on))}, len(on))})
	}
	children := make([]int32, len(on))
	for i, p := range on {
		children[i] = next + int32(i)
		n.bring(p, rate/float64(len(on)))
	}
	n.loads.carry(slot, rate, children...)
	return len(on)
}

// bring counts a child's load as that of partition p.
func (n *planning) bring(p int32, load float64) {
	n.partition[p] += load
	if n.ordering != Unordered {
		n.fixed[p] += load
		n.solid[p] += load
	}
}

// grow returns how many children are born.
func (n *planning) grow(s *split, k Heavy, next int32, room int) int {
	d := len(s.children)
	rate := max(k.Fast, k.Lower)
	if !s.Spread && k.Fast <= splitFast*n.threshold*float64(d) && k.Lower <= growSlow*n.threshold*float64(d) {
		return 0
	}
	slot := int32(s.hi >> n.table.shift)
	for i := range s.children {
		c := &s.children[i]
		if c.owner != c.target || n.backlog(int32(c.owner), k) {
			return 0
		}
	}
	more := n.candidates(s, rate, min((growBy-1)*d, room))
	if len(more) == 0 {
		return 0
	}
	n.change(Change{Kind: GrowKey, Hi: k.Hi, Lo: k.Lo, Partitions: more, Reason: fmt.Sprintf(
		"%d children at %.2f T each, T %.0f/s", d, rate/float64(d)/n.threshold, n.threshold)})
	children := make([]int32, 0, d+len(more))
	for _, c := range s.children {
		n.bring(int32(c.owner), rate/float64(d+len(more))-n.loads.child(c.id))
		children = append(children, c.id)
	}
	for i, p := range more {
		n.bring(p, rate/float64(d+len(more)))
		children = append(children, next+int32(i))
	}
	if s.Spread {
		n.widen(s, more, rate)
	}
	n.loads.carry(slot, 0, children...)
	for _, id := range children {
		n.loads.children[id] = rate / float64(len(children)) * n.loads.weight
	}
	return len(more)
}

// merge gives a key back that has been small for long enough.
func (n *planning) merge(s *split) {
	id := [2]uint64{s.hi, s.lo}
	st := n.keys[id]
	if st == nil || !st.seen {
		st = n.state(Heavy{Hi: s.hi, Lo: s.lo, Upper: n.load.Heavy.Floor})
	}
	slot := s.hi >> n.table.shift
	if st.peak >= mergeBelow*n.threshold || n.now < s.Born+s.Hold || n.table.slots[slot].owner != n.table.slots[slot].target {
		return
	}
	for _, c := range s.children {
		if c.owner != c.target || n.backlog(int32(c.owner), Heavy{Hi: s.hi, Lo: s.lo}) {
			return
		}
	}
	n.change(Change{Kind: MergeKey, Hi: s.hi, Lo: s.lo, Reason: fmt.Sprintf("peak %.2f T, T %.0f/s, split for %v", st.peak/n.threshold,
		n.threshold, (n.now - s.Born).Round(time.Second))})
	l := n.ledger()
	l.remember(Merged{s.hi, s.lo, n.now, s.Hold})
	rate := 0.0
	for _, c := range s.children {
		rate += n.loads.child(c.id)
	}
	n.loads.carry(int32(slot), -rate)
	if s.Spread {
		n.fluids = slices.DeleteFunc(n.fluids, func(f fluid) bool { return f.hi == s.hi && f.lo == s.lo })
		n.solid[n.table.slots[slot].owner] += rate
	}
	delete(n.keys, id)
}

// holdOf is how long a key stays split at least: twice as long as the last time when that is not long ago.
func (n *planning) holdOf(k Heavy) time.Duration {
	m, ok := n.ledger().remembered(k.Hi, k.Lo)
	if !ok || n.now-m.At > holdsNear*m.Hold {
		return n.s.Hold
	}
	return min(2*m.Hold, longestHold)
}

// ledger is that of the plan.
func (n *planning) ledger() *Ledger {
	if n.out.Ledger == nil {
		l := n.table.Ledger()
		n.out.Ledger = &l
	}
	return n.out.Ledger
}

// candidates returns the partitions that a key of this rate gets besides those it has, at most most of them.
func (n *planning) candidates(s *split, rate float64, most int) []int32 {
	has := map[int32]bool{}
	if s != nil {
		for _, c := range s.children {
			has[int32(c.owner)] = true
		}
	}
	var free []int32
	for _, p := range n.table.active {
		if !has[p] && !n.guards.closed(p, n.now) {
			free = append(free, p)
		}
	}
	limit := len(has) + len(free)
	if n.s.MaxFanout > 0 {
		limit = min(limit, n.s.MaxFanout)
	}
	if n.ordering == Unordered {
		part := n.part()
		limit = min(limit, len(has)+most)
		want := min(max(2, int(math.Ceil(rate/part))), limit)
		if s != nil && (want < limit && 2*want < 3*len(has) || rate < growSlow*part*float64(len(has))) || want <= len(has) {
			return nil // half as many again, or all, is worth a change
		}
		slices.SortFunc(free, n.byRoom)
		return free[:want-len(has)]
	}
	want := min(max(2, int(math.Ceil(rate/n.threshold))), limit)
	on := n.emptiest(s, free, rate, want)
	now, had := 0, max(1, len(has)) // a key that is whole has one place
	for d := had; d-len(has) <= min(len(on), most); d *= 2 {
		now = max(0, d-len(has))
	}
	if now < 2-len(has) {
		return nil
	}
	return n.reserve(on, now, rate)
}

// reserve keeps the partitions behind the first now free for the same key: it grows onto them in the next ticks.
func (n *planning) reserve(on []int32, now int, rate float64) []int32 {
	for _, p := range on[now:] {
		n.fixed[p] += rate / float64(len(on))
	}
	return on[:now]
}

// byFill sorts partitions, those first that have least of load for their weight, then least of everything.
func (n *planning) byFill(all []int32, load []float64) {
	slices.SortFunc(all, func(a, b int32) int {
		wa, wb := n.table.partitions[a].Weight, n.table.partitions[b].Weight
		return cmp.Or(cmp.Compare(load[a]/wa, load[b]/wb), cmp.Compare(n.partition[a]/wa, n.partition[b]/wb), cmp.Compare(a, b))
	})
}

// emptiest returns partitions for the children of a key that is split by source: a power of two in all, on those that
// have the fewest bytes that cannot move. Of the numbers of children up to want it takes the one that leaves the
// fullest partition least full: more children are not better when they have to share partitions with others.
func (n *planning) emptiest(s *split, free []int32, rate float64, want int) []int32 {
	n.byFill(free, n.fixed)
	has, others := 0, 0.0 // fullest of the partitions that it has, without the key itself
	if s != nil {
		has = len(s.children)
		for _, c := range s.children {
			others = max(others, n.fixed[c.owner]-n.loads.child(c.id))
		}
	}
	full := func(d int) float64 {
		f := others
		if d > has {
			f = max(f, n.fixed[free[d-has-1]])
		}
		return f + rate/float64(d)
	}
	best, least := 0, math.Inf(1)
	if has > 0 {
		best, least = has, full(has)
	}
	for d := max(2, 2*has); d <= 1<<(bits.Len(uint(max(1, want)))-1) && d-has <= len(free); d *= 2 {
		if f := full(d); f < 0.98*least || f < 0.8*n.capacity {
			best, least = d, f
		}
	}
	return free[:best-has]
}
