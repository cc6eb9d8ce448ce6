package window

// A slot of the index is 0 or has the place of an entry + 1, and above it how far it stands behind its home, which is the slot where
// a search for its id begins: farAway for that and more. So a search looks at entries only that have the home of its id, and
// moving slots up at none: entries are all over memory, and each look is a miss of the cache.
const (
	placeBits = 24 // a window has 10,000,000 ids at most
	placeMask = 1<<placeBits - 1
	farAway   = 1<<(32-placeBits) - 1
)

// find returns the slot of the index where id is, or where it would be; before there is an index, nothing is found.
func (s *Set) find(id ID) (at uint64, found bool) {
	if len(s.index) == 0 {
		return 0, false
	}
	last := uint64(len(s.index) - 1)
	at = id.Lo & last
	for away := uint32(0); ; away++ {
		slot := s.index[at]
		if slot == 0 {
			return at, false
		}
		if slot>>placeBits == min(away, farAway) && s.entry(slot&placeMask-1).id == id {
			return at, true
		}
		at = (at + 1) & last
	}
}

// at returns the place of the entry in a slot that has one.
func (s *Set) at(slot uint64) (n uint32) { return s.index[slot]&placeMask - 1 }

// insert puts an entry that is not in the index there.
func (s *Set) insert(n uint32) {
	id := s.entry(n).id
	at, _ := s.find(id)
	s.index[at] = uint32(min((at-id.Lo)&uint64(len(s.index)-1), farAway))<<placeBits | (n + 1)
}

// grow keeps the index at most half full.
func (s *Set) grow() {
	if 2*(s.pending+s.finished+1) <= len(s.index) {
		return
	}
	old := s.index
	s.index = make([]uint32, max(leastRoom, 2*len(old)))
	for _, slot := range old {
		if slot != 0 {
			s.insert(slot&placeMask - 1)
		}
	}
}

// extract takes an entry out of the index, if it is there.
func (s *Set) extract(n uint32) {
	last := uint64(len(s.index) - 1)
	hole := s.entry(n).id.Lo & last
	for ; s.index[hole]&placeMask != n+1; hole = (hole + 1) & last {
		if s.index[hole] == 0 {
			return
		}
	}
	for at := hole; ; { // what follows moves up, unless it would come before its own home
		at = (at + 1) & last
		slot := s.index[at]
		if slot == 0 {
			break
		}
		away := uint64(slot >> placeBits)
		if away == farAway {
			away = (at - s.entry(slot&placeMask-1).id.Lo) & last
		}
		if gap := (at - hole) & last; away >= gap {
			s.index[hole] = uint32(min(away-gap, farAway))<<placeBits | slot&placeMask
			hole = at
		}
	}
	s.index[hole] = 0
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
	if full := s.pending + s.finished + len(refs) - s.limit; full > 0 && len(s.shares.heap) > 0 {
		for n := s.shares.heap[0].held.oldest; n != 0 && full > 0; full-- {
			e := s.entry(n - 1)
			any |= s.index[e.id.Lo&last]
			n = e.next
		}
	}
	s.loaded = any
}
