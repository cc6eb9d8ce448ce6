package rate

import (
	"hash/maphash"
	"sync"
	"time"
)

// Table holds buckets by name in a fixed amount of memory: 33 bytes each. It is exact for as many names as it has
// buckets in use at a time, and one is in use only from a take until it is full again. When there are more, the bucket
// that is nearest to full is forgotten, which gives its owner a little early what it was about to get anyway; those who
// take much are the last to be forgotten. All methods may be called concurrently.
type Table struct {
	seed      maphash.Seed
	start     time.Time
	sets      []set
	forgotten func()
}

const ways = 16

// set is the buckets among which a name has its own, under one lock. Names are kept as hashes of 64 bits, which nobody
// outside can compute: two names in a set that have the same one would share a bucket.
type set struct {
	mu      sync.Mutex
	names   [ways]uint64
	buckets [ways]bucket
}

// NewTable returns a table of at least size buckets that starts at now. forgotten is called, under a lock, for each
// bucket that is forgotten before it is full.
func NewTable(size int, now time.Time, forgotten func()) *Table {
	sets := 1
	for sets*ways < size {
		sets *= 2
	}
	return &Table{seed: maphash.MakeSeed(), start: now, sets: make([]set, sets), forgotten: forgotten}
}

// Moment is now as the table counts time. Clocks that are set do not change it as long as now has a monotonic reading.
func (t *Table) Moment(now time.Time) Moment { return max(1, 1+Moment(now.Sub(t.start))) }

// Take takes what is asked of the bucket of a name, which has the given limit: wait is 0 when it was there. Otherwise
// nothing is taken, and it will be there after wait if nobody else takes anything.
func (t *Table) Take(name []byte, l *Limit, ask Ask, now Moment) (wait time.Duration) {
	h := maphash.Bytes(t.seed, name)
	s := &t.sets[(h>>32)&uint64(len(t.sets)-1)]
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(h, now)
	b := &s.buckets[i]
	if s.names[i] != h {
		if b.fullAt() > now {
			t.forgotten()
		}
		s.names[i], *b = h, bucket{}
	}
	*b, wait = l.take(*b, ask, now)
	return wait
}

// Give puts back what was taken of the bucket of a name and not used after all. A bucket that was forgotten is full.
func (t *Table) Give(name []byte, l *Limit, ask Ask) {
	h := maphash.Bytes(t.seed, name)
	s := &t.sets[(h>>32)&uint64(len(t.sets)-1)]
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, known := range &s.names {
		if known == h {
			s.buckets[i] = l.give(s.buckets[i], ask)
		}
	}
}

// find returns the place of a name: the one it has, or a full bucket's, or that of the one which is full first.
func (s *set) find(h uint64, now Moment) (place int) {
	for i, name := range &s.names {
		if name == h {
			return i
		}
	}
	for i := range s.buckets {
		at := s.buckets[i].fullAt()
		if at <= now {
			return i
		}
		if at < s.buckets[place].fullAt() {
			place = i
		}
	}
	return place
}
