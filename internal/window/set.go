package window

import (
	"math"
	"sync"
	"time"
)

// Set is the ids of a stream's events: pending ones, whose events are on their way, and finished ones, whose events are
// safe. It holds limit ids at most. When one more comes, the owner that has most finished ones loses its oldest; a pending
// one is never forgotten. Its methods may be called concurrently. An id costs 24 bytes and 8 more in the index; the memory
// grows with use and is kept.
type Set struct {
	made time.Time

	mu     sync.Mutex
	limit  int
	age    time.Duration
	forced int64 // second in which the newest id was finished that had to make room for another; -1: none had to

	index  []uint32 // of entries, by hash; open addressing, at most half full
	old    []uint32 // the index before, as long as something of it has to move; nil otherwise
	moved  int      // so many of its slots have
	loaded uint32   // what was loaded ahead, kept so that it is
	blocks []*[blockSize]entry
	used   uint32 // entries that were in use ever
	free   uint32 // first of the free entries + 1, which are chained by next
	shares shares[chain]
	due    int64 // no finished entry is of an earlier second; never when there is none

	pending, finished int
	claims            []*Claim    // those that are not settled, by number; nil: the number is free
	numbers           []uint32    // free numbers
	doomed            map[ID]bool // pending ones that Free was called for

	log     Log    // what is finished is kept there; nil: nowhere
	scratch []byte // a record for it
	read    bool   // it says since when it has everything
	unread  bool   // see Unread
}

// entry is one id. While it is pending, at is the number of its claim and next the place in it; then at is the second
// in which it was finished.
type entry struct {
	id   ID
	at   uint32
	next uint32
}

// chain is the entries of one owner; its share is as large as there are finished ones.
type chain struct {
	oldest  uint32 // first of the finished entries + 1, which are chained by next
	newest  uint32 // the last of them + 1
	pending int
}

const (
	never     = math.MaxInt64
	blockBits = 12
	blockSize = 1 << blockBits
	pending   = 1 << 31 // set in entry.at: seconds and claims stay far below
	leastRoom = 1 << 10 // places in the first index
)

// NewSet returns an empty set of limit ids, each for as long as age after it was finished.
func NewSet(limit int, age time.Duration, now time.Time) *Set {
	return &Set{made: now, limit: limit, age: age, forced: -1, due: never}
}

// Resize sets the bounds anew.
func (s *Set) Resize(limit int, age time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit, s.age = limit, age
	for s.pending+s.finished > limit && s.finished > 0 {
		s.force(s.shares.heap[0])
	}
}

// State is what a Set holds, and how far back it remembers everything that was finished.
type State struct {
	Pending, Finished int
	Reach             time.Duration
}

// State describes the set.
func (s *Set) State(now time.Time) State {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(now)
	return State{s.pending, s.finished, reach(s.made, now, s.forced, s.age)}
}

// Known reports whether an event with that id is on its way or safe.
func (s *Set) Known(id ID, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(now)
	_, found := s.find(id)
	return found
}

func (s *Set) entry(n uint32) *entry { return &s.blocks[n>>blockBits][n&(blockSize-1)] }

// add makes an entry for an id that is not there, and returns it; it is not counted and in no chain yet. False: there
// is no room.
func (s *Set) add(id ID, c *Claim) (n uint32, ok bool) {
	if s.pending+s.finished >= s.limit {
		from := s.shares.victim(c.share, c.share.held.pending, c.greedy)
		if from.size == 0 {
			return 0, false
		}
		s.force(from)
	}
	return s.place(id), true
}

// place makes an entry for an id that is not there; there is room.
func (s *Set) place(id ID) (n uint32) {
	s.grow()
	switch {
	case s.free != 0:
		n = s.free - 1
		s.free = s.entry(n).next
	default:
		n = s.used
		if n&(blockSize-1) == 0 {
			s.blocks = append(s.blocks, new([blockSize]entry))
		}
		s.used++
	}
	if n+1 >= left {
		panic("BUG: window: more ids than a window may have")
	}
	s.entry(n).id = id
	s.insert(n)
	return n
}

// remove frees an entry that is in no chain and not counted any more.
func (s *Set) remove(n uint32) {
	s.extract(n)
	s.entry(n).next, s.free = s.free, n+1
}

// finish puts an entry behind the finished ones of a share, whose place is not set.
func (s *Set) finish(n, now uint32, sh *share[chain]) {
	e := s.entry(n)
	e.at, e.next = now, 0
	if c := &sh.held; c.newest == 0 {
		c.oldest = n + 1
	} else {
		s.entry(c.newest - 1).next = n + 1
	}
	sh.held.newest = n + 1
	sh.size++
	s.finished++
	s.due = min(s.due, int64(now))
}

// forget removes the oldest finished entry of a share, whose place is not set.
func (s *Set) forget(sh *share[chain]) {
	c := &sh.held
	n := c.oldest - 1
	if c.oldest = s.entry(n).next; c.oldest == 0 {
		c.newest = 0
	}
	sh.size--
	s.finished--
	s.remove(n)
}

// force forgets the oldest finished entry of a share before its time.
func (s *Set) force(sh *share[chain]) {
	s.forced = max(s.forced, int64(s.entry(sh.held.oldest-1).at))
	s.forget(sh)
	s.shares.sized(sh)
}

// expire forgets what is too old. It looks at every share, once a second at most.
func (s *Set) expire(now time.Time) {
	past := max(now.Sub(s.made), 0) - s.age
	old := func(second int64) bool { return past > time.Duration(second+1)*time.Second }
	if s.due == never || !old(s.due) {
		return
	}
	s.due = never
	for _, sh := range s.shares.of {
		for sh.size > 0 && old(int64(s.entry(sh.held.oldest-1).at)) {
			s.forget(sh)
		}
		if sh.size > 0 {
			s.due = min(s.due, int64(s.entry(sh.held.oldest-1).at))
		}
		s.shares.sized(sh)
	}
}
