package partitioner

import (
	"fmt"
	"time"
)

// Limit is what a key may bring that has one order and so one partition, and brings more than that takes. It is not in the
// table: it is about what comes in, and where it goes does not change.
type Limit struct {
	Hi, Lo    uint64
	Partition int32
	Rate      float64 // weight a second; 0: it has no limit any more
	Reason    string  // with its figures
}

// String is a line of text.
func (l Limit) String() string {
	if l.Rate == 0 {
		return fmt.Sprintf("key %016x%016x has no limit any more: %s", l.Hi, l.Lo, l.Reason)
	}
	return fmt.Sprintf("key %016x%016x is limited to %.0f/s on partition %d: %s", l.Hi, l.Lo, l.Rate, l.Partition, l.Reason)
}

// Figures of limits.
const (
	limitShare = 0.5  // of a partition's load, from which on its backlog is a key's
	limitRoom  = 0.9  // of what a backend confirms: so that the backlog goes
	limitMore  = 1.25 // times, when the backlog is gone and the key still brings more
	maxLimits  = 256
)

// limited is what is remembered of a key with a limit.
type limited struct {
	Limit
	target  bool          // the rate is the partition's target: it is not measured
	since   time.Duration // when the rate was set
	refused time.Duration // when something was refused last
}

// planLimits limits the keys that cannot be divided and bring more than one partition takes.
func (n *planning) planLimits() {
	before := n.over
	n.over = map[[2]uint64]keyState{}
	for _, k := range n.load.Heavy.Keys {
		id := [2]uint64{k.Hi, k.Lo}
		if n.orderingOf(k.Class) != Strict || n.limits[id] != nil || len(n.limits) >= maxLimits {
			continue
		}
		if c := n.capacityFor(k); c.Rate > 0 && n.overLimit(k, c, before) {
			c.since, c.refused = n.now, n.now
			n.limits[id] = &c
			n.out.Limits = append(n.out.Limits, c.Limit)
		}
	}
	for id, l := range n.limits {
		n.adjust(id, l)
	}
}

// overLimit reports whether a key has brought too much for long enough: the band of splits.
func (n *planning) overLimit(k Heavy, c limited, before map[[2]uint64]keyState) bool {
	id := [2]uint64{k.Hi, k.Lo}
	st := before[id]
	st.fast, st.slow = inARow(st.fast, k.Fast > splitFast*c.Rate), inARow(st.slow, k.Lower > splitSlow*c.Rate)
	if st.fast+st.slow > 0 {
		n.over[id] = st
	}
	return st.fast >= ticksFast || st.slow >= ticksSlow
}

// capacityFor is what a key may bring: what its partition is meant to take, or else what the backend confirms of it
// while more comes in; with a Rate of 0 nobody knows, or it can take more.
func (n *planning) capacityFor(k Heavy) (l limited) {
	s := &n.table.slots[k.Hi>>n.table.shift]
	p := int32(s.target)
	if s.owner != s.target {
		return l
	}
	l.Limit = Limit{Hi: k.Hi, Lo: k.Lo, Partition: p}
	if n.s.Target > 0 {
		l.Rate, l.target = n.s.Target*n.table.partitions[p].Weight, true
		l.Reason = fmt.Sprintf("it brings %.0f/s, and a partition is meant to take %.0f/s", max(k.Fast, k.Lower), l.Rate)
		return l
	}
	if int(p) >= len(n.load.Confirmed) || n.load.Confirmed[p] <= 0 {
		return l
	}
	gets := n.loads.lately(p) // n.partition still has most of a key that has just gone
	if min(k.Fast, k.Lower) < limitShare*gets {
		return l
	}
	share := min(1, max(k.Fast, k.Lower)/max(1, gets)) // too low a limit is raised late, one too high lowered at once
	l.Rate = limitRoom * share * n.load.Confirmed[p]
	l.Reason = fmt.Sprintf("it brings %.0f/s, and the backend confirms %.0f/s of its partition, whose backlog grows", k.Lower, n.load.Confirmed[p])
	return l
}

// adjust lifts a limit that refuses nothing any more, and measures again one that is measured.
func (n *planning) adjust(id [2]uint64, l *limited) {
	if n.load.Refused[id] > 0 {
		l.refused = n.now
	}
	rate, reason := l.Rate, ""
	switch grows := int(l.Partition) < len(n.load.Confirmed) && n.load.Confirmed[l.Partition] > 0; {
	case n.now-l.refused >= n.s.Hold:
		delete(n.limits, id)
		rate, reason = 0, fmt.Sprintf("nothing of it was refused for %v", n.now-l.refused)
	case l.target || n.now-l.since < time.Second:
	case grows && limitRoom*n.load.Confirmed[l.Partition] < l.Rate:
		rate = limitRoom * n.load.Confirmed[l.Partition]
		reason = fmt.Sprintf("the backend confirms %.0f/s of its partition, whose backlog grows", n.load.Confirmed[l.Partition])
	case !grows && n.now-l.since >= n.s.Hold:
		rate, reason = limitMore*l.Rate, fmt.Sprintf("the backlog of its partition has not grown for %v", n.s.Hold)
	}
	if reason == "" {
		return
	}
	l.Rate, l.Reason, l.since = rate, reason, n.now
	n.out.Limits = append(n.out.Limits, l.Limit)
}
