package partitioner

import "time"

// Sketch counts the heaviest keys of a stream in a fixed amount of memory: Space-Saving (Metwally, Agrawal, El
// Abbadi, ICDT 2005) with weights, and decay instead of counts for life. Of each key it follows it knows a lower and an
// upper bound; a key that it does not follow has at most Floor. Bounds differ by at most total/counters. It is not safe
// for concurrent use.
//
// Counts only grow between two decays, so the heap may lag behind them: its keys are lower bounds that are brought up
// to date when they reach the root. A hit then touches one counter and no heap.
type Sketch struct {
	counters []counter
	heap     []ranked // of four children each; the least first
	index    []int32  // open addressing from the hash on: position in counters + 1, 0 is free; at most a half full
	total    float64
	memory   time.Duration // half-life of the long memory
	// seconds that the memories hold: they fade as the counts do
	fastTime, slowTime float64
}

type counter struct {
	hi, lo uint64
	count  float64 // upper bound of the weight, decayed with the long memory's half-life
	err    float64 // how much of count may belong to other keys
	atTick float64 // count at the last tick
	fast   float64 // weight until the last tick, decayed with fastHalfLife; a lower bound
}

type ranked struct {
	count float64 // at most that of the counter
	at    int32
}

// The two memories of a sketch: the short one notices a sudden key, the long one is exact enough to compare with.
const (
	fastHalfLife = 250 * time.Millisecond
	slowHalfLife = 2 * time.Second
)

// DefaultCounters is enough for 256 partitions at a split threshold of a fifth of one: the error of a key is then
// at most a third of the threshold when all keys are alike, far less when some are heavy.
const DefaultCounters = 4096

// EventCost is what an event weighs besides its bytes.
const EventCost = 64

// NewSketch returns an empty sketch; counters is how many keys it follows, a power of two.
func NewSketch(counters int) *Sketch {
	if counters < 2 || counters&(counters-1) != 0 {
		panic("BUG: a sketch needs a power of two of counters")
	}
	return &Sketch{counters: make([]counter, 0, counters), heap: make([]ranked, 0, counters),
		index: make([]int32, 2*counters), memory: slowHalfLife}
}

// Add counts weight for a key (its Hash).
func (s *Sketch) Add(hi, lo uint64, weight float64) {
	s.total += weight
	mask := uint64(len(s.index) - 1)
	at := lo & mask
	for s.index[at] != 0 {
		c := &s.counters[s.index[at]-1]
		if c.lo == lo && c.hi == hi {
			c.count += weight
			return
		}
		at = (at + 1) & mask
	}
	if n := len(s.counters); n < cap(s.counters) {
		s.counters = append(s.counters, counter{hi: hi, lo: lo, count: weight})
		s.heap = append(s.heap, ranked{weight, int32(n)})
		s.index[at] = int32(n) + 1
		s.up(n)
		return
	}
	s.replace(hi, lo, weight)
}

// replace gives the counter of the lightest key to another one.
func (s *Sketch) replace(hi, lo uint64, weight float64) {
	s.settle()
	n := s.heap[0].at
	c := &s.counters[n]
	s.forget(c.hi, c.lo)
	*c = counter{hi: hi, lo: lo, count: c.count + weight, err: c.count, atTick: c.count}
	mask := uint64(len(s.index) - 1)
	at := lo & mask
	for s.index[at] != 0 {
		at = (at + 1) & mask
	}
	s.index[at] = n + 1
	s.down(c.count)
}

// settle sees to it that the root of the heap is the lightest counter.
func (s *Sketch) settle() {
	for {
		root := s.heap[0]
		if now := s.counters[root.at].count; now > root.count {
			s.down(now)
		} else {
			return
		}
	}
}

// down sets the count of the root and lets it sink.
func (s *Sketch) down(count float64) {
	moved := ranked{count, s.heap[0].at}
	at, n := 0, len(s.heap)
	for {
		first := 4*at + 1
		if first >= n {
			break
		}
		least := first
		for i := first + 1; i < min(first+4, n); i++ {
			if s.heap[i].count < s.heap[least].count {
				least = i
			}
		}
		if s.heap[least].count >= count {
			break
		}
		s.heap[at] = s.heap[least]
		at = least
	}
	s.heap[at] = moved
}

func (s *Sketch) up(at int) {
	for at > 0 {
		parent := (at - 1) / 4
		if s.heap[parent].count <= s.heap[at].count {
			return
		}
		s.heap[parent], s.heap[at] = s.heap[at], s.heap[parent]
		at = parent
	}
}

// forget takes a key out of the index; what was pushed aside by it moves up (Knuth 6.4 R).
func (s *Sketch) forget(hi, lo uint64) {
	mask := uint64(len(s.index) - 1)
	at := lo & mask
	for {
		if c := &s.counters[s.index[at]-1]; c.lo == lo && c.hi == hi {
			break
		}
		at = (at + 1) & mask
	}
	for next := (at + 1) & mask; s.index[next] != 0; next = (next + 1) & mask {
		home := s.counters[s.index[next]-1].lo & mask
		if (next-home)&mask >= (next-at)&mask {
			s.index[at] = s.index[next]
			at = next
		}
	}
	s.index[at] = 0
}

// Floor is the most that a key can have which the sketch does not follow.
func (s *Sketch) Floor() float64 {
	if len(s.counters) < cap(s.counters) {
		return 0
	}
	s.settle()
	return s.heap[0].count
}

// Tick lets elapsed time pass: what was counted before weighs less by then.
func (s *Sketch) Tick(elapsed time.Duration) {
	slow, fast := decay(elapsed, s.memory), decay(elapsed, fastHalfLife)
	for i := range s.counters {
		c := &s.counters[i]
		c.fast = c.fast*fast + (c.count - c.atTick)
		c.count *= slow
		c.err *= slow
		c.atTick = c.count
	}
	for i := range s.heap {
		s.heap[i].count *= slow
	}
	s.total *= slow
	s.fastTime = s.fastTime*fast + elapsed.Seconds()
	s.slowTime = (s.slowTime + elapsed.Seconds()) * slow
}

// Reset forgets everything.
func (s *Sketch) Reset() {
	s.counters, s.heap = s.counters[:0], s.heap[:0]
	clear(s.index)
	s.total, s.fastTime, s.slowTime = 0, 0, 0
}

// Total is the weight of everything, decayed as the counts are.
func (s *Sketch) Total() float64 { return s.total }

// Bytes is the memory that the sketch holds.
func (s *Sketch) Bytes() int {
	return cap(s.counters)*48 + cap(s.heap)*16 + len(s.index)*4
}
