package forward

// table is an open-addressing table from a 32-bit tag to a position in a slice elsewhere. Entries of another
// generation are free, so that a new frame starts with an empty table at the cost of one increment.
type table struct {
	entries []entry // a power of two of them, at most half used
	gen     uint32
	used    int
}

type entry struct{ tag, gen, at uint32 }

const smallestTable = 64

// clear empties the table.
func (t *table) clear() {
	t.gen++
	t.used = 0
	if t.gen == 0 || t.entries == nil { // after 2^32 frames old entries would come back to life
		t.entries, t.gen = make([]entry, max(smallestTable, len(t.entries))), 1
	}
}

// seek returns the first place from pos on that holds the tag (found) or is free.
func (t *table) seek(pos, tag uint32) (place uint32, found bool) {
	mask := uint32(len(t.entries) - 1)
	for ; ; pos++ {
		e := &t.entries[pos&mask]
		if e.gen != t.gen {
			return pos & mask, false
		}
		if e.tag == tag {
			return pos & mask, true
		}
	}
}

// put fills the free place that seek has returned.
func (t *table) put(place, tag uint32, at int) {
	t.entries[place] = entry{tag: tag, gen: t.gen, at: uint32(at)}
	t.used++
	if t.used*2 > len(t.entries) {
		t.rehash()
	}
}

func (t *table) rehash() {
	old := t.entries
	t.entries = make([]entry, 2*len(old))
	for _, e := range old {
		if e.gen == t.gen {
			place, found := t.seek(e.tag, e.tag)
			for found { // equal tags of different values
				place, found = t.seek(place+1, e.tag)
			}
			t.entries[place] = e
		}
	}
}
