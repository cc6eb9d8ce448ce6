package forward

import (
	"math/bits"
	"slices"
)

// table is an open-addressing table from a 32-bit tag to a position in a slice elsewhere. It is as small as what it
// is to hold allows: finding a place in it is one access of memory, which must not be a slow one.
type table struct{ entries []entry }

// entry is free while next is 0.
type entry struct{ tag, next uint32 } // next: behind the position

// reset empties the table and makes room for n values.
func (t *table) reset(n int) {
	size := 1 << bits.Len(uint(2*n)) // over half of it stays free
	t.entries = slices.Grow(t.entries[:0], size)[:size]
	clear(t.entries)
}

// seek returns the first place from pos on that holds the tag (found) or is free.
func (t *table) seek(pos, tag uint32) (place uint32, found bool) {
	mask := uint32(len(t.entries) - 1)
	for ; ; pos++ {
		e := t.entries[pos&mask]
		if e.next == 0 {
			return pos & mask, false
		}
		if e.tag == tag {
			return pos & mask, true
		}
	}
}

// at returns the position that a place holds.
func (t *table) at(place uint32) uint32 { return t.entries[place].next - 1 }

// put fills the free place that seek has returned.
func (t *table) put(place, tag uint32, at int) {
	t.entries[place] = entry{tag: tag, next: uint32(at) + 1}
}
