package forward

import (
	"math/bits"
	"slices"
)

// positions is an open-addressing table from a 32-bit tag to a position in a slice elsewhere. It is as small as what it
// is to hold allows: finding a place in it is one access of memory, which must not be a slow one.
type positions struct{ entries []entry }

// entry is free while next is 0.
type entry struct{ tag, next uint32 } // next: behind the position

// reset empties the table and makes room for n values.
func (p *positions) reset(n int) {
	size := 1 << bits.Len(uint(2*n)) // over half of it stays free
	p.entries = slices.Grow(p.entries[:0], size)[:size]
	clear(p.entries)
}

// seek returns the first place from pos on that holds the tag (found) or is free.
func (p *positions) seek(pos, tag uint32) (place uint32, found bool) {
	mask := uint32(len(p.entries) - 1)
	for ; ; pos++ {
		e := p.entries[pos&mask]
		if e.next == 0 {
			return pos & mask, false
		}
		if e.tag == tag {
			return pos & mask, true
		}
	}
}

// at returns the position that a place holds.
func (p *positions) at(place uint32) uint32 { return p.entries[place].next - 1 }

// put fills the free place that seek has returned.
func (p *positions) put(place, tag uint32, at int) {
	p.entries[place] = entry{tag: tag, next: uint32(at) + 1}
}
