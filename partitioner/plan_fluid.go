package partitioner

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// fluid is the load of a key that is spread. Nothing says where it goes: gateways send each event to the least loaded of
// the key's partitions, so it fills up what the others leave uneven, and goes elsewhere when a slot comes.
type fluid struct {
	hi, lo uint64
	on     []int32
	load   []float64 // on each of them
	added  int       // of on, by reach
}

// Figures of spread keys.
const (
	widest     = 0.63 // of C, what a part of a key has at most where nearly everything is spread
	narrow     = 0.3  // this much less than the share that is spread, and tau at least
	sweeps     = 4
	loudest    = 0.05  // of the level: what differs by more is not called noise
	stale      = 1.1   // times as much, or as little, in the sketch is more than noise
	reachStart = 1.001 // of its share, what the fullest partition of a spread key has for the key to get more of them
	reachEnd   = 0.997 // a little room, or noise begins it again
	leastGain  = 0.002 // of a share, to be worth a partition more
	sameFill   = 1e-3  // partitions whose loads differ by less are as full as each other
)

// part is what one partition of a spread key is meant to get. A fifth of C, as long as most of the load stays where it is: then
// more partitions with something of the key are more that it can even out. The more of the load is spread, the less it takes.
func (n *planning) part() float64 {
	return min(widest, max(tau, n.heavy-narrow)) * n.capacity
}

// collect gathers the fluids of the table, and has them settle.
func (n *planning) collect() {
	n.solid = slices.Clone(n.partition)
	for i := range n.table.splits.all {
		s := &n.table.splits.all[i]
		if !s.Spread {
			continue
		}
		all := 0.0
		for _, c := range s.children {
			all += n.loads.child(c.id)
		}
		now := n.rate(s, all) / max(all, 1)
		f := fluid{hi: s.hi, lo: s.lo, on: make([]int32, len(s.children)), load: make([]float64, len(s.children))}
		for j, c := range s.children {
			load := n.loads.child(c.id)
			n.solid[c.target] -= load
			f.on[j], f.load[j] = int32(c.target), load*now
			if all < 1 {
				f.load[j] = 0
			}
		}
		n.fluids = append(n.fluids, f)
	}
	n.settle()
}

// rate is that of a spread key: the smoothed one as long as the sketch, which forgets sooner, does not know better.
func (n *planning) rate(s *split, smoothed float64) float64 {
	k, ok := n.known[[2]uint64{s.hi, s.lo}]
	if !ok {
		k = Heavy{Upper: n.load.Heavy.Floor}
	}
	switch most := max(k.Upper, k.Fast); { // a young sketch's long memory says too little
	case k.Lower > smoothed*stale:
		return (k.Lower + k.Upper) / 2
	case smoothed > most*stale:
		return most
	}
	return smoothed
}

// widen is what growing does to a fluid.
func (n *planning) widen(s *split, more []int32, rate float64) {
	for i := range n.fluids {
		if f := &n.fluids[i]; f.hi == s.hi && f.lo == s.lo {
			f.on = append(f.on, more...)
			f.load = slices.Repeat([]float64{rate / float64(len(f.on))}, len(f.on))
		}
	}
}

// settle computes the loads of the partitions as the gateways will make them: each spread key fills its emptiest partitions
// first, all of them in turn until nothing changes much.
func (n *planning) settle() {
	if len(n.fluids) == 0 {
		return
	}
	copy(n.partition, n.solid)
	for i := range n.fluids {
		for j, p := range n.fluids[i].on {
			n.partition[p] += n.fluids[i].load[j]
		}
	}
	order := make([]int, MaxPartitions)
	for range sweeps {
		for i := range n.fluids {
			n.pour(&n.fluids[i], order)
		}
	}
}

// pour takes a fluid out and lets it in again: up to the level at which all of it is in. order is room to work in.
func (n *planning) pour(f *fluid, order []int) {
	rate, order := 0.0, order[:len(f.on)]
	for j, p := range f.on {
		rate += f.load[j]
		n.partition[p] = max(0, n.partition[p]-f.load[j])
		order[j] = j
	}
	fill := func(j int) float64 { return n.partition[f.on[j]] / n.table.partitions[f.on[j]].Weight }
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(fill(a), fill(b)), cmp.Compare(a, b)) })
	level, sum, weight := math.Inf(1), rate, 0.0
	for i, j := range order {
		sum, weight = sum+n.partition[f.on[j]], weight+n.table.partitions[f.on[j]].Weight
		if level = sum / weight; i+1 < len(order) && level <= fill(order[i+1]) {
			break
		}
	}
	for j, p := range f.on {
		f.load[j] = max(0, level*n.table.partitions[p].Weight-n.partition[p])
		n.partition[p] += f.load[j]
	}
}

// byRoom compares how much room two partitions have: the emptiest first, of those that are as full as each other the one where
// less has to stay.
func (n *planning) byRoom(a, b int32) int {
	rank := func(p int32) float64 { return math.Round(n.relative(p) / sameFill) }
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(n.solid[a]/n.table.partitions[a].Weight, n.solid[b]/n.table.partitions[b].Weight), cmp.Compare(a, b))
}

// reach gives spread keys more partitions, one at a time, as long as some have too much that others could take: to be on one
// more partition costs one key a place, to move a slot costs one to each key in it.
func (n *planning) reach() {
	more := make([][]int32, len(n.fluids))
	for start := reachStart; n.room > 0; start, n.room = reachEnd, n.room-1 {
		n.settle()
		i, to := n.widenable(start)
		if to == noPartition {
			break
		}
		f := &n.fluids[i]
		f.on, f.load, f.added, more[i] = append(f.on, to), append(f.load, 0), f.added+1, append(more[i], to)
	}
	for i, on := range more {
		if len(on) > 0 {
			f := &n.fluids[i]
			n.change(Change{Kind: GrowKey, Hi: f.hi, Lo: f.lo, Partitions: on,
				Reason: fmt.Sprintf("its %d partitions are full, and %s is not", len(f.on)-len(on), ids(on[:1]))})
		}
	}
}

// widenable is the spread key that can take most from the partitions that have over start of their share, and the partition
// that it should get.
func (n *planning) widenable(start float64) (key int, to int32) {
	key, to = 0, noPartition
	most := leastGain * n.level
	for i := range n.fluids {
		f := &n.fluids[i]
		s := n.table.splits.find(f.hi, f.lo)
		if s == nil || len(f.on) != len(s.children)+f.added || n.s.MaxFanout > 0 && len(f.on) >= n.s.MaxFanout {
			continue // it has changed in this tick
		}
		free := n.roomiest(f)
		if free == noPartition {
			continue
		}
		for j, p := range f.on {
			over := n.partition[p] - start*n.level*n.table.partitions[p].Weight
			// What the noise of one partition is, all partitions of the key share.
			noise := min(loudest*n.level, n.loads.sigma(n.partition[p])/math.Sqrt(float64(len(f.on))))
			if over > noise && n.partition[p] > busy*n.capacity {
				if gain := min(f.load[j], over, n.level*n.table.partitions[free].Weight-n.partition[free]); gain > most {
					key, to, most = i, free, gain
				}
			}
		}
	}
	return key, to
}

// roomiest is the partition with most room that a key is not on.
func (n *planning) roomiest(f *fluid) int32 {
	at := noPartition
	for _, p := range n.table.active {
		if !n.guards.closed(p, n.now) && !slices.Contains(f.on, p) && (at == noPartition || n.byRoom(p, at) < 0) {
			at = p
		}
	}
	return at
}
