package partitioner

import (
	"slices"
	"time"
)

// Figures of weights.
const (
	slowAck     = 3.0 // times the median
	slowTicks   = 10  // seconds in a row
	weightStep  = 0.9
	leastWeight = 0.1
	weightBack  = 60 // seconds of being as fast as the others, for a step up
)

// slowness is what is remembered of a partition that confirms slowly. One that stays weaker than the others is as fast as they are
// with the weight it has, and slow with more: it is tried again, but twice as late each time.
type slowness struct {
	row     int     // seconds in a row of being slow; below 0: of being as fast as the others
	raised  bool    // its weight went up last
	ceiling float64 // with this weight it became slow last; 0: none
	hold    int     // seconds of being fast before it gets so much again
}

// planWeights takes weight from a partition that has become slow while its load has not grown: no key is to blame.
func (n *planning) planWeights() {
	var known []time.Duration
	for _, p := range n.table.active {
		if int(p) < len(n.load.Ack) && n.load.Ack[p] > 0 {
			known = append(known, n.load.Ack[p])
		}
	}
	if len(known) < 3 {
		return // nothing to compare with
	}
	slices.Sort(known)
	median := float64(known[len(known)/2])
	for _, p := range n.table.active {
		if int(p) >= len(n.load.Ack) || n.load.Ack[p] == 0 {
			continue
		}
		n.weigh(p, float64(n.load.Ack[p])/median)
	}
}

// weigh looks at a partition that takes times as long as the middle one.
func (n *planning) weigh(p int32, times float64) {
	s, w := n.guards.slow[p], n.table.partitions[p].Weight
	switch {
	case times > slowAck && n.relative(p) < 1.2:
		s.row = max(s.row, 0) + 1
	case times < slowAck/2:
		s.row = min(s.row, 0) - 1
	default:
		s.row = 0
	}
	more, back := min(1, w/weightStep), weightBack
	if s.ceiling > 0 && more > 0.99*s.ceiling {
		back = s.hold
	}
	switch {
	case s.row >= slowTicks && w*weightStep >= leastWeight:
		if s.raised || s.ceiling == 0 {
			s.ceiling, s.hold = w, min(max(weightBack, 2*s.hold), int(longestHold/time.Second))
		}
		s.row, s.raised = 0, false
		n.change(Change{Kind: SetWeight, Partition: p, Weight: w * weightStep, Reason: "it confirms slowly and its load has not grown"})
	case s.row <= -back:
		if w > 0.99*s.ceiling { // it has kept what was too much
			s.ceiling, s.hold = 0, 0
		}
		if s.row, s.raised = 0, w < 1; s.raised {
			n.change(Change{Kind: SetWeight, Partition: p, Weight: more, Reason: "it confirms as fast as the others"})
		}
	}
	n.guards.slow[p] = s
}
