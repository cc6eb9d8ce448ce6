package compress

import "math/bits"

// fseTable codes the symbols of one kind in a block, by finite state entropy (RFC 8878, 4.1): a state is what is left of the
// symbols so far, and codes the next one by the bits that it sheds.
type fseTable struct {
	counts  [64]uint32
	shares  [64]uint16 // of each symbol, of the states
	steps   [64]fseStep
	states  [1 << mostLog]uint16 // by symbol, in ascending order
	spread  [1 << mostLog]byte   // symbols by state
	log     uint                 // there are 1<<log states; 0: there is one symbol
	symbols int                  // they are below
}

// fseStep is what coding a symbol does to a state.
type fseStep struct {
	shed uint32 // state + shed has the number of bits that go in its upper half
	base int32  // of the symbol's states
}

const (
	leastLog = 5
	mostLog  = 9
)

// count begins a table for a block.
func (t *fseTable) count() { clear(t.counts[:]) }

// prepare makes the table of n symbols that were counted, with at most 1<<most states.
func (t *fseTable) prepare(n int, most uint) {
	used := 0
	for s, c := range t.counts {
		if c > 0 {
			t.symbols = s + 1
			used++
		}
	}
	if used == 1 {
		t.log = 0
		t.steps[t.symbols-1], t.states[0] = fseStep{}, 0
		return
	}
	t.log = uint(max(bits.Len(uint(n-1))-3, leastLog, bits.Len(uint(2*used-1))))
	t.log = min(t.log, most)
	t.share(n)
	t.build()
}

// share gives each symbol its share of the states: at least one, if it occurs.
func (t *fseTable) share(n int) {
	left, largest := 1<<t.log, 0
	for s := range t.symbols {
		c := int(t.counts[s])
		share := (c<<t.log + n/2) / n
		if c > 0 {
			share = max(share, 1)
		}
		t.shares[s] = uint16(share)
		left -= share
		if share > int(t.shares[largest]) {
			largest = s
		}
	}
	if left >= 0 {
		t.shares[largest] += uint16(left)
		return
	}
	for ; left < 0; left++ { // rare, and only by as many as there are symbols
		for s := range t.symbols {
			if t.shares[s] > t.shares[largest] {
				largest = s
			}
		}
		t.shares[largest]--
	}
}

// build fills in steps and states.
func (t *fseTable) build() {
	size := 1 << t.log
	var next [64]int
	at, total := 0, 0
	for s := range t.symbols {
		share := int(t.shares[s])
		next[s] = total
		for range share {
			t.spread[at] = byte(s)
			at = (at + size>>1 + size>>3 + 3) & (size - 1)
		}
		if share > 0 {
			shed := t.log - uint(bits.Len(uint(share-1)))
			if share > 1 {
				shed++ // bits that its lower states shed; those from share<<shed on one more
			}
			t.steps[s] = fseStep{uint32(shed<<16) - uint32(share)<<shed, int32(total - share)}
		}
		total += share
	}
	for i, s := range t.spread[:size] {
		t.states[next[s]] = uint16(size + i)
		next[s]++
	}
}

// appendTable appends the description of the table (RFC 8878, 4.1.1).
func (t *fseTable) appendTable(dst []byte) []byte {
	size := 1 << t.log
	w := uint64(t.log - leastLog)
	n, width := uint(4), t.log+1
	left, threshold := size+1, size
	for s := 0; left > 1; s++ {
		share := int(t.shares[s])
		spare := 2*threshold - 1 - left
		left -= share
		v := share + 1
		if v >= threshold {
			v += spare
		}
		w |= uint64(v) << n
		n += width
		if v < spare {
			n--
		}
		for left < threshold {
			width, threshold = width-1, threshold>>1
		}
		if share == 0 { // how many more that do not occur, in threes
			zeros := 0
			for t.shares[s+1+zeros] == 0 {
				zeros++
			}
			s += zeros
			for ; zeros >= 3; zeros -= 3 {
				w |= 3 << n
				dst, w, n = flushBytes(dst, w, n+2)
			}
			w |= uint64(zeros) << n
			n += 2
		}
		dst, w, n = flushBytes(dst, w, n)
	}
	if n > 0 {
		dst = append(dst, byte(w))
	}
	return dst
}

// flushBytes appends the whole bytes of the n bits in w.
func flushBytes(dst []byte, w uint64, n uint) ([]byte, uint64, uint) {
	for ; n >= 8; n, w = n-8, w>>8 {
		dst = append(dst, byte(w))
	}
	return dst, w, n
}
