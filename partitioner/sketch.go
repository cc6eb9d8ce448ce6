package partitioner

import (
	"math"
	"time"
)

// Sketch counts the heaviest keys of a stream in a fixed amount of memory: Space-Saving (Metwally, Agrawal, El
// Abbadi, ICDT 2005) with weights, and decay instead of counts for life. Of each key it follows it knows a lower and an
// upper bound; a key that it does not follow has at most Floor. It is not safe for concurrent use.
//
// A key has its place in one of many small sketches of ways counters each, by its hash: to find it, or the lightest of them
// to replace, is to look at a few lines of memory, whatever the keys are. Hashes are keyed, so that the keys of a stream
// are spread over them; the bounds hold for any keys, and Floor is about total/counters.
type Sketch struct {
	sets  []set
	total float64
	// half-life of the long memory, and seconds that the memories hold: they fade as the counts do
	memory             time.Duration
	fastTime, slowTime float64
}

// ways is how many counters a set has: with 16 the heaviest keys of a set leave enough to the others.
const ways = 16

// set is the counters of the keys whose hashes end in the same bits. A free one counts 0.
type set struct {
	lo     [ways]uint64
	count  [ways]float64 // upper bound of the weight, decayed with the long memory's half-life
	hi     [ways]uint64
	err    [ways]float64 // how much of count may belong to other keys
	atTick [ways]float64 // count at the last tick
	fast   [ways]float64 // weight until the last tick, decayed with fastHalfLife; a lower bound
}

// The two memories of a sketch: the short one notices a sudden key, the long one is exact enough to compare with.
const (
	fastHalfLife = 250 * time.Millisecond
	slowHalfLife = 2 * time.Second
)

// DefaultCounters is enough for 256 partitions at a split threshold of a fifth of one: the error of a key is then
// about a sixth of the threshold when all keys are alike, far less when some are heavy.
const DefaultCounters = 8192

// EventCost is what an event weighs besides its bytes.
const EventCost = 64

// NewSketch returns an empty sketch; counters is how many keys it follows, a power of two.
func NewSketch(counters int) *Sketch {
	if counters < 2 || counters&(counters-1) != 0 {
		panic("BUG: a sketch needs a power of two of counters")
	}
	s := &Sketch{sets: make([]set, max(1, counters/ways)), memory: slowHalfLife}
	for i := counters; i < ways; i++ { // which nobody ever gets
		s.sets[0].lo[i], s.sets[0].hi[i], s.sets[0].count[i] = math.MaxUint64, math.MaxUint64, math.Inf(1)
	}
	return s
}

// Add counts weight for a key (its Hash).
func (s *Sketch) Add(hi, lo uint64, weight float64) {
	s.total += weight
	b := &s.sets[lo&uint64(len(s.sets)-1)]
	for i := range b.lo {
		if b.lo[i] == lo && b.hi[i] == hi {
			b.count[i] += weight
			return
		}
	}
	b.replace(hi, lo, weight)
}

// replace gives the counter of the lightest key of the set to another one.
func (b *set) replace(hi, lo uint64, weight float64) {
	at, least := 0, b.count[0]
	for i := 1; i < ways; i++ {
		if b.count[i] < least {
			at, least = i, b.count[i]
		}
	}
	b.lo[at], b.hi[at] = lo, hi
	b.count[at], b.err[at], b.atTick[at], b.fast[at] = least+weight, least, least, 0
}

// Floor is the most that a key can have which the sketch does not follow.
func (s *Sketch) Floor() (most float64) {
	for i := range s.sets {
		least := s.sets[i].count[0]
		for _, c := range s.sets[i].count[1:] {
			least = min(least, c)
		}
		most = max(most, least)
	}
	return most
}

// Tick lets elapsed time pass: what was counted before weighs less by then.
func (s *Sketch) Tick(elapsed time.Duration) {
	slow, fast := decay(elapsed, s.memory), decay(elapsed, fastHalfLife)
	for n := range s.sets {
		b := &s.sets[n]
		for i := range b.count {
			if b.count[i] == 0 || math.IsInf(b.count[i], 1) {
				continue
			}
			b.fast[i] = b.fast[i]*fast + (b.count[i] - b.atTick[i])
			b.count[i] *= slow
			b.err[i] *= slow
			b.atTick[i] = b.count[i]
		}
	}
	s.total *= slow
	s.fastTime = s.fastTime*fast + elapsed.Seconds()
	s.slowTime = (s.slowTime + elapsed.Seconds()) * slow
}

// Reset forgets everything.
func (s *Sketch) Reset() {
	for n := range s.sets {
		for i, c := range s.sets[n].count {
			if !math.IsInf(c, 1) {
				b := &s.sets[n]
				b.lo[i], b.hi[i], b.count[i], b.err[i], b.atTick[i], b.fast[i] = 0, 0, 0, 0, 0, 0
			}
		}
	}
	s.total, s.fastTime, s.slowTime = 0, 0, 0
}

// Total is the weight of everything, decayed as the counts are.
func (s *Sketch) Total() float64 { return s.total }

// Bytes is the memory that the sketch holds.
func (s *Sketch) Bytes() int { return len(s.sets) * ways * 6 * 8 }
