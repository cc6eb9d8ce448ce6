package partitioner

import (
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/event"
)

// Meter counts what a gateway assigns: which keys are heavy, and what each slot, each child of a split key and each
// partition gets. Batches count into one of a few shards, so that they do not wait for each other; how many there are
// follows how many batches are counted at once. All methods may be called concurrently, but Read by one goroutine.
type Meter struct {
	counters int // of each sketch
	wanted   atomic.Pointer[wanted]
	mu       sync.Mutex // guards that shards grow by one at a time
	shards   atomic.Pointer[[]*shard]
	turn     atomic.Uint32
}

// shard is what one batch at a time counts into.
type shard struct {
	mu       sync.Mutex
	sketch   *Sketch
	classes  [event.ClassSource]*Sketch // of the keys of other classes; nil until there are some
	counted  bool                       // something since the last Read
	slots    []float64                  // weight since then
	children tallies                    // likewise, by id
	gone     []float64                  // weight of each partition since then, with what has no key
	keyless  float64                    // weight since then of what has no key
	sent     []float64                  // of each partition, for the choice among the children of a key that is spread; see Forget
	turns    uint64
	named    []Named // keys that were wanted
}

// maxShards bounds what a meter takes; so many batches at once are more than a processor's worth each.
const maxShards = 8

// CountersFor is how many keys a sketch follows for a stream of n partitions: the error of a key is about a twelfth of
// what makes it too big, and the memory, 49 bytes a key, small.
func CountersFor(n int) int {
	return min(DefaultCounters, 1<<bits.Len(uint(64*n-1)))
}

// MeterSize is the memory that the meter of a stream of n partitions takes, and what it comes to when so many batches are counted at
// once, with every order that they can ask for.
func MeterSize(n, batches int) (least, most int) {
	const slot, partition = 8, 16
	sketch, rest := counterSize*CountersFor(n), slot*SlotsFor(n)+partition*n
	return sketch + rest, min(maxShards, batches) * ((1+int(event.ClassSource))*sketch + rest)
}

// NewMeter returns a meter whose sketches follow so many keys each.
func NewMeter(counters int) *Meter {
	m := &Meter{counters: counters}
	m.shards.Store(&[]*shard{{sketch: NewSketch(counters)}})
	return m
}

// take returns a shard that nobody else uses until its mu is unlocked.
func (m *Meter) take(t *Table) *shard {
	s := m.free()
	if len(s.slots) != len(t.slots) {
		s.slots = make([]float64, len(t.slots))
	}
	for len(s.sent) < len(t.partitions) {
		s.sent, s.gone = append(s.sent, 0), append(s.gone, 0)
	}
	return s
}

func (m *Meter) free() *shard {
	all := *m.shards.Load()
	for _, s := range all {
		if s.mu.TryLock() {
			return s
		}
	}
	if len(all) < min(maxShards, runtime.GOMAXPROCS(0)) && m.mu.TryLock() {
		defer m.mu.Unlock()
		all = *m.shards.Load()
		s := &shard{sketch: NewSketch(m.counters)}
		s.mu.Lock()
		more := append(all[:len(all):len(all)], s)
		m.shards.Store(&more)
		return s
	}
	s := all[m.turn.Add(1)%uint32(len(all))]
	s.mu.Lock()
	return s
}

// count adds an event but to a sketch; s.mu is held.
func (s *shard) count(weight float64, at *Place) {
	s.gone[at.Partition] += weight
	s.sent[at.Partition] += weight
	if at.Child < 0 {
		s.slots[at.Slot] += weight
	} else {
		s.children.add(at.Child, weight)
	}
}

// Reading is what a meter has counted in a tick.
type Reading struct {
	Load       Load      // Heavy, Slots and Children, rates of the tick
	Partitions []float64 // weight a second that went to each, with what has no key
	Idle       bool      // nothing was counted and nothing is remembered: the rest is empty
}

// Tick says how a meter is read.
type Tick struct {
	Elapsed time.Duration // since the last one
	Share   float64       // of everything, from which on a key is heavy
	Hold    time.Duration // of split keys: what is shorter than usual makes the memory shorter; 0: as usual
}

// MemoryFor is the half-life of a sketch's long memory for keys that are held split for so long.
func MemoryFor(hold time.Duration) time.Duration {
	if hold == 0 {
		return slowHalfLife
	}
	return min(slowHalfLife, max(fastHalfLife, hold/15))
}

// Read ends a tick under table t, and returns what was counted in it.
func (m *Meter) Read(t *Table, tick Tick) Reading {
	r := Reading{Idle: !m.busy()}
	if r.Idle {
		return r
	}
	r.Partitions = make([]float64, len(t.partitions))
	r.Load = Load{Elapsed: tick.Elapsed, Slots: make([]float64, len(t.slots)), Children: map[int32]float64{}}
	var reports []Report
	for _, s := range *m.shards.Load() {
		if report, ok := s.read(&r, tick); ok {
			reports = append(reports, report)
		}
	}
	r.Load.Heavy = MergeReports(reports...)
	return r
}

// busy tells that something was counted since the last Read, or is remembered.
func (m *Meter) busy() bool {
	for _, s := range *m.shards.Load() {
		s.mu.Lock()
		busy := s.counted || s.remembers()
		s.mu.Unlock()
		if busy {
			return true
		}
	}
	return false
}

// nothing is the weight below which a sketch is as good as empty: half an event.
const nothing = EventCost / 2

// read takes what the shard has counted; ok is false when its sketch is empty.
func (s *shard) read(r *Reading, tick Tick) (report Report, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.counted && !s.remembers() {
		return report, false
	}
	seconds, total := tick.Elapsed.Seconds(), 0.0
	for i, w := range s.slots {
		if i < len(r.Load.Slots) {
			r.Load.Slots[i] += w / seconds
		}
	}
	for i, w := range s.gone {
		total += w
		if i < len(r.Partitions) {
			r.Partitions[i] += w / seconds
		}
	}
	s.children.each(func(id int32, w float64) { r.Load.Children[id] += w / seconds })
	clear(s.slots)
	clear(s.gone)
	r.Load.Keyless, s.keyless = r.Load.Keyless+s.keyless/seconds, 0
	s.children.reset()
	s.counted = false
	Forget(s.sent, forgetTicks*total/float64(max(1, len(s.sent))))
	return s.rates(tick), true
}

// forgetTicks is how many ticks' worth of a partition's share counts against it in the choice among children.
const forgetTicks = 20

// tallies is a small table of weights by id, with open addressing.
type tallies struct {
	ids     []int32 // + 1; 0 is free
	weights []float64
	used    int
}

func (t *tallies) add(id int32, weight float64) {
	if 2*t.used >= len(t.ids) {
		t.grow()
	}
	mask := uint32(len(t.ids) - 1)
	at := uint32(id) & mask
	for t.ids[at] != 0 && t.ids[at] != id+1 {
		at = (at + 1) & mask
	}
	if t.ids[at] == 0 {
		t.ids[at] = id + 1
		t.used++
	}
	t.weights[at] += weight
}

func (t *tallies) grow() {
	old := *t
	n := max(16, 2*len(old.ids))
	*t = tallies{ids: make([]int32, n), weights: make([]float64, n)}
	old.each(t.add)
}

func (t *tallies) each(f func(id int32, weight float64)) {
	for i, id := range t.ids {
		if id != 0 {
			f(id-1, t.weights[i])
		}
	}
}

func (t *tallies) reset() {
	clear(t.ids)
	clear(t.weights)
	t.used = 0
}
