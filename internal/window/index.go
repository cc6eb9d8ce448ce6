package window

// A slot of the index is 0 or has the place of an entry + 1, and above it how far it stands behind its home, which is the slot where
// a search for its id begins: farAway for that and more; and above that a part of its hash. So a search looks at few entries that are not
// the id's, and moving slots up at none: entries are all over memory, and each look is a miss of the cache.
const (
	placeBits = 24 // a window has 10,000,000 ids at most
	placeMask = 1<<placeBits - 1
	awayBits  = 6
	farAway   = 1<<awayBits - 1
	partShift = placeBits + awayBits
)

// sign is what a slot has above the place of an entry with that id, so far behind its home.
func sign(id ID, away uint64) uint32 {
	return uint32(id.Hi)<<partShift | uint32(min(away, farAway))<<placeBits
}

// left is a slot of the index before from which the entry has gone: what stands behind it is still found.
const left = placeMask

// pace is how many slots of the index before move when an id comes. All have moved long before there is a next index; all at once
// would hold up a stream with a million ids for some 100 milliseconds.
const pace = 4

// find returns the entry of an id.
func (s *Set) find(id ID) (n uint32, found bool) {
	if n, found = s.search(s.index, id); !found && s.old != nil {
		n, found = s.search(s.old, id)
	}
	return n, found
}

// search looks for an id in one index; before there is one, nothing is found.
func (s *Set) search(index []uint32, id ID) (n uint32, found bool) {
	if len(index) == 0 {
		return 0, false
	}
	last := uint64(len(index) - 1)
	at := id.Lo & last
	for away := uint64(0); ; away++ {
		slot := index[at]
		if slot == 0 {
			return 0, false
		}
		if slot&^placeMask == sign(id, away) && slot&placeMask != left {
			if n = slot&placeMask - 1; s.entry(n).id == id {
				return n, true
			}
		}
		at = (at + 1) & last
	}
}

// insert puts an entry that is not in the index there.
func (s *Set) insert(n uint32) {
	index := s.index
	last := uint64(len(index) - 1)
	id := s.entry(n).id
	home := id.Lo & last
	at := home
	for index[at] != 0 {
		at = (at + 1) & last
	}
	index[at] = sign(id, (at-home)&last) | (n + 1)
}

// grow keeps the index at most half full. What is in the one before moves when others come.
func (s *Set) grow() {
	s.move(pace)
	if 2*(s.pending+s.finished+1) <= len(s.index) {
		return
	}
	s.move(len(s.old)) // there is nothing left
	s.old, s.moved, s.index = s.index, 0, make([]uint32, max(leastRoom, 2*len(s.index)))
}

// move takes so many slots of the index before into the one that there is.
func (s *Set) move(slots int) {
	for ; slots > 0 && s.moved < len(s.old); slots-- {
		if slot := &s.old[s.moved]; *slot != 0 && *slot&placeMask != left {
			s.insert(*slot&placeMask - 1)
			*slot = left
		}
		s.moved++
	}
	if s.moved >= len(s.old) {
		s.old, s.moved = nil, 0
	}
}

// extract takes an entry out of the index, if it is there.
func (s *Set) extract(n uint32) {
	index := s.index
	last := uint64(len(index) - 1)
	hole := s.entry(n).id.Lo & last
	for ; index[hole]&placeMask != n+1; hole = (hole + 1) & last {
		if index[hole] == 0 {
			s.leave(n)
			return
		}
	}
	for at := hole; ; { // what follows moves up, unless it would come before its own home
		at = (at + 1) & last
		slot := index[at]
		if slot == 0 {
			break
		}
		away := uint64(slot >> placeBits & farAway)
		if away == farAway {
			away = (at - s.entry(slot&placeMask-1).id.Lo) & last
		}
		if gap := (at - hole) & last; away >= gap {
			index[hole] = slot&^(farAway<<placeBits) | uint32(min(away-gap, farAway))<<placeBits
			hole = at
		}
	}
	index[hole] = 0
}

// leave takes an entry out of the index before, if it is there.
func (s *Set) leave(n uint32) {
	if s.old == nil {
		return
	}
	last := uint64(len(s.old) - 1)
	for at := s.entry(n).id.Lo & last; s.old[at] != 0; at = (at + 1) & last {
		if s.old[at]&placeMask == n+1 {
			s.old[at] = left
			return
		}
	}
}

// ahead loads the slots that refs, and what must go for them, will need: one after the other while something is done with each,
// every load would be waited for.
func (s *Set) ahead(refs []Ref) {
	if len(s.index) == 0 {
		return
	}
	last, any := uint64(len(s.index)-1), uint32(0)
	for i := range refs {
		any |= s.index[refs[i].ID.Lo&last]
	}
	if s.old != nil {
		last := uint64(len(s.old) - 1)
		for i := range refs {
			any |= s.old[refs[i].ID.Lo&last]
		}
	}
	if full := s.pending + s.finished + len(refs) - s.limit; full > 0 && len(s.shares.heap) > 0 {
		for n := s.shares.heap[0].held.oldest; n != 0 && full > 0; full-- {
			e := s.entry(n - 1)
			any |= s.index[e.id.Lo&last]
			n = e.next
		}
	}
	s.loaded = any
}
