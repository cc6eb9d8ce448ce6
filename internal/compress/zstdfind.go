package compress

import (
	"encoding/binary"
	"math/bits"
)

// sequence is some literals and then a match. Its numbers are as zstd codes them.
type sequence struct {
	literals uint32
	match    uint32 // its length - leastMatch
	offset   uint32 // back to what it repeats + 3, or sameOffset

	literalCode, lengthCode, offsetCode uint8  // what tables code
	bits                                uint8  // how many of rest
	rest                                uint64 // what is written as it is
}

const (
	leastMatch = 3
	// sameOffset is the offset of the match before; where there are no literals between them, that of the one before that.
	sameOffset = 1

	placesLog = 15
	wildCopy  = 16 // bytes that are copied at once where less would do
	margin    = 16 // bytes at the end of a block where no match begins
)

// placeOf is where the position of the first six bytes of v is kept.
func placeOf(v uint64) uint64 { return v << 16 * 227718039650203 >> (64 - placesLog) }

// find finds the sequences of src[from:], which may repeat all that is before them, and returns the literals, those behind the
// last sequence too. A match is searched at the distance of the last one, up to four bytes on, which looks at bytes that are in
// the cache and decides all five at once; then where the next six bytes were last, here and one further on. Where nothing is
// found for long, steps become larger.
func (p *packer) find(src []byte, from int) (literals []byte) {
	sequences, rep := p.sequences[:0], p.rep
	done, n := from, 0 // behind the last match; literals so far
	for s, limit := max(from, 1), len(src)-margin; s < limit; {
		v := binary.LittleEndian.Uint64(src[s : s+8])
		at, next := &p.places[placeOf(v)], &p.places[placeOf(v>>8)]
		first, second := int(*at), int(*next)
		*at, *next = uint32(s), uint32(s+1)
		t, offset := 0, uint32(0)
		switch k := again(v, binary.LittleEndian.Uint64(src[s-rep:s-rep+8])); {
		case k < 8:
			s += k
			t, offset = s-rep, sameOffset
		case first > 0 && four(src, first) == uint32(v):
			t = first
		case second > 0 && four(src, second) == uint32(v>>8):
			s, t = s+1, second
		default:
			s += 2 + (s-done)>>5
			continue
		}
		end := s + 4 + common(src[s+4:], src[t+4:])
		if offset == 0 {
			for s > done && t > 0 && src[s-1] == src[t-1] {
				s, t = s-1, t-1
			}
			rep = s - t
			offset = uint32(rep) + leastMatch
		}
		sequences = append(sequences, sequence{literals: uint32(s - done), match: uint32(end - s - leastMatch), offset: offset})
		n = p.keep(n, src, done, s)
		if done = end; end >= limit {
			break
		}
		s = done
	}
	p.sequences, p.rep = sequences, rep
	n += copy(p.literals[n:], src[done:])
	return p.literals[:n]
}

// keep appends src[from:to] to the n literals that there are, and returns how many there are then.
func (p *packer) keep(n int, src []byte, from, to int) int {
	if to-from <= wildCopy { // there are margin bytes behind the match
		copy(p.literals[n:n+wildCopy], src[from:from+wildCopy])
	} else {
		copy(p.literals[n:], src[from:to])
	}
	return n + to - from
}

// again is where in eight bytes four begin that are the same in v and w, but for the first ones; 8 for nowhere.
func again(v, w uint64) int {
	const low = 0x7f7f7f7f7f7f7f7f
	x := v ^ w
	x = ^(x&low + low | x) & ^uint64(low) // the highest bit of each byte that is the same
	x &= x >> 8
	x &= x >> 16
	return bits.TrailingZeros64(x&^0xff) / 8
}

func four(src []byte, i int) uint32 { return binary.LittleEndian.Uint32(src[i : i+4]) }

// common is how many bytes a and b begin with that are the same; a is not longer than b.
func common(a, b []byte) (n int) {
	b = b[:len(a)]
	for ; n+8 <= len(a); n += 8 {
		if x := binary.LittleEndian.Uint64(a[n:n+8]) ^ binary.LittleEndian.Uint64(b[n:n+8]); x != 0 {
			return n + bits.TrailingZeros64(x)/8
		}
	}
	for n < len(a) && a[n] == b[n] {
		n++
	}
	return n
}
