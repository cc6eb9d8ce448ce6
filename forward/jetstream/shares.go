package jetstream

import "math/bits"

// Holding is what one JetStream stream of a backend has.
type Holding struct {
	Used, Limit int64 // bytes
	Need        int64 // bytes of a run that it could not take; 0: none
	DeadLetter  bool
}

const (
	// slots is how many streams, and as many dead letters, the space is cut for before there are so many.
	slots = 32
	// quarters: a stream's equal share is four units, a dead letter's one; and a quarter of each is nobody else's.
	quarters = 4
)

// Shares cuts total among the streams: each may hold in proportion to what it holds already, where everyone counts with at
// least a quarter of an equal share, also those that do not exist yet. So a busy stream grows into what others leave
// unused, a new or idle one always has its quarter, and all together are never more than total.
//
// A run that is larger than all this leaves its stream comes before what is kept for streams that do not exist: Need is part
// of the share, as far as the others leave any, so that a stream that holds little does not stay full for a run's size. Needs
// are met one after the other, since none is helped by a part: who has stored its run needs no more.
//
// A stream that holds more than its share, since total was lowered, keeps what it has and takes nothing new.
func Shares(total int64, all []Holding) []int64 {
	streams, letters := 0, 0
	for _, h := range all {
		if h.DeadLetter {
			letters++
		} else {
			streams++
		}
	}
	missing := [2]int64{int64(max(0, slots-streams)), int64(max(0, slots-letters))}
	n := int64(streams+letters) + missing[0] + missing[1]
	unit := max(1, total/(quarters*(int64(streams)+missing[0])+int64(letters)+missing[1]))
	weight := func(h Holding) int64 {
		floor := unit
		if h.DeadLetter {
			floor = max(1, unit/quarters)
		}
		return max(floor, h.Used)
	}
	weights, sum := make([]int64, len(all)), int64(0)
	for i, h := range all {
		weights[i] = weight(h)
		sum += weights[i]
	}
	kept := missing[0]*weight(Holding{}) + missing[1]*weight(Holding{DeadLetter: true})
	for i, h := range all {
		if more := min(h.Need-weights[i], total-n-sum); more > 0 {
			weights[i] += more
			sum += more
			kept = min(kept, total-n-sum)
		}
	}
	sum += kept
	shares := make([]int64, len(all))
	for i, w := range weights {
		shares[i] = max(1, proportion(w, total-n, sum)) // JetStream takes 0 for no bound
	}
	return shares
}

// proportion is floor(a*b/c) without overflow, for a <= c and nothing negative but b, which counts as 0.
func proportion(a, b, c int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(max(0, b)))
	q, _ := bits.Div64(high, low, uint64(c))
	return int64(q)
}
