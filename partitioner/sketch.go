package partitioner

import (
	"math"
	"math/bits"
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

// set is the counters of the keys whose hashes end in the same bits. What a key that it does not follow needs is close
// together: tags and counts are three lines of memory, and the counter that changes hands is one or two more.
type set struct {
	tags  [ways / 8]uint64 // a byte of each key's hash, to know most of the others by
	count [ways]float64    // upper bound of the weight, decayed with the long memory's half-life; a free one counts 0
	of    [ways]counter
}

// counter is what a set knows of a key besides its count.
type counter struct {
	hi, lo uint64
	err    float64 // how much of count may belong to other keys
	atTick float64 // count at the last tick
	fast   float64 // weight until the last tick, decayed with fastHalfLife; a lower bound
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
		s.sets[0].of[i], s.sets[0].count[i] = counter{hi: math.MaxUint64, lo: math.MaxUint64}, math.Inf(1)
	}
	return s
}

// Bytes of a word, for the search among eight tags at once.
const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// Add counts weight for a key (its Hash).
func (s *Sketch) Add(hi, lo uint64, weight float64) {
	s.total += weight
	b := &s.sets[lo&uint64(len(s.sets)-1)]
	tag := hi & 0xff * lowBits
	for n, tags := range b.tags {
		differ := tags ^ tag
		// The high bit of each byte that is 0, and perhaps of some behind it (Mycroft): those are looked at in vain.
		for equal := (differ - lowBits) &^ differ & highBits; equal != 0; equal &= equal - 1 {
			i := (8*n + bits.TrailingZeros64(equal)/8) % ways
			if c := &b.of[i]; c.lo == lo && c.hi == hi {
				b.count[i] += weight
				return
			}
		}
	}
	b.replace(hi, lo, weight)
}

// replace gives the counter of the lightest key of the set to another one.
func (b *set) replace(hi, lo uint64, weight float64) {
	at := b.lightest()
	least, shift := b.count[at], at%8*8
	b.tags[at/8] = b.tags[at/8]&^(0xff<<shift) | hi&0xff<<shift
	b.count[at] = least + weight
	b.of[at] = counter{hi: hi, lo: lo, err: least, atTick: least}
}

// lightest is the place of the least count, of counts that are alike to 48 bits the first. Counts are not negative, so their
// bits have their order; with its place in the last bits a count is compared without a branch.
func (b *set) lightest() int {
	const place = ways - 1
	at := func(i int) uint64 { return math.Float64bits(b.count[i])&^place | uint64(i) }
	w, x, y, z := at(0), at(1), at(2), at(3)
	for i := 4; i < ways; i += 4 {
		w, x, y, z = min(w, at(i)), min(x, at(i+1)), min(y, at(i+2)), min(z, at(i+3))
	}
	return int(min(w, x, y, z) & place)
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
			c := &b.of[i]
			c.fast = c.fast*fast + (b.count[i] - c.atTick)
			b.count[i] *= slow
			c.err *= slow
			c.atTick = b.count[i]
		}
	}
	s.total *= slow
	s.fastTime = s.fastTime*fast + elapsed.Seconds()
	s.slowTime = (s.slowTime + elapsed.Seconds()) * slow
}

// Reset forgets everything.
func (s *Sketch) Reset() {
	for n := range s.sets {
		b := &s.sets[n]
		b.tags = [ways / 8]uint64{}
		for i, count := range b.count {
			if !math.IsInf(count, 1) {
				b.count[i], b.of[i] = 0, counter{}
			}
		}
	}
	s.total, s.fastTime, s.slowTime = 0, 0, 0
}

// Total is the weight of everything, decayed as the counts are.
func (s *Sketch) Total() float64 { return s.total }

// counterSize is what a key costs that a sketch follows.
const counterSize = 1 + 6*8

// Bytes is the memory that the sketch holds.
func (s *Sketch) Bytes() int { return len(s.sets) * ways * counterSize }
