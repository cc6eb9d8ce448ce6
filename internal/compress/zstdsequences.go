package compress

import (
	"encoding/binary"
	"math/bits"
)

// Codes of lengths (RFC 8878, 3.1.1.3.2.1.1): small numbers have one each; larger ones share them, with as many bits behind as
// they need to be told apart. Offsets have the code of their highest bit.
const (
	literalDirect = 64 // from here on the code of a number of literals follows from its highest bit
	lengthDirect  = 128
	literalBeyond = 19 // what is added to the highest bit
	lengthBeyond  = 36
)

var (
	literalCodes = [literalDirect]uint8{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 16, 17, 17, 18, 18, 19, 19,
		20, 20, 20, 20, 21, 21, 21, 21, 22, 22, 22, 22, 22, 22, 22, 22, 23, 23, 23, 23, 23, 23, 23, 23,
		24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24, 24}
	lengthCodes = [lengthDirect]uint8{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23,
		24, 25, 26, 27, 28, 29, 30, 31, 32, 32, 33, 33, 34, 34, 35, 35, 36, 36, 36, 36, 37, 37, 37, 37,
		38, 38, 38, 38, 38, 38, 38, 38, 39, 39, 39, 39, 39, 39, 39, 39, 40, 40, 40, 40, 40, 40, 40, 40,
		40, 40, 40, 40, 40, 40, 40, 40, 41, 41, 41, 41, 41, 41, 41, 41, 41, 41, 41, 41, 41, 41, 41, 41,
		42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42, 42,
		42, 42, 42, 42, 42, 42, 42, 42}
	literalBits = [64]uint8{16: 1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	lengthBits  = [64]uint8{32: 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
)

func literalCode(n uint32) uint8 {
	if n < literalDirect {
		return literalCodes[n]
	}
	return uint8(bits.Len32(n) - 1 + literalBeyond)
}

func lengthCode(n uint32) uint8 {
	if n < lengthDirect {
		return lengthCodes[n]
	}
	return uint8(bits.Len32(n) - 1 + lengthBeyond)
}

// mostOffsetLog is the most that the format allows for the table of offsets, one less than for the others.
const mostOffsetLog = 8

// How a table is given: by its one symbol, or described.
const (
	tableOfOne     = 1
	describedTable = 2
)

// appendSequences appends the section of the sequences; false means that it has no place in room, which begins as dst does.
func (p *packer) appendSequences(dst, room []byte) ([]byte, bool) {
	n := len(p.sequences)
	switch {
	case n == 0:
		return append(dst, 0), true
	case n < 128:
		dst = append(dst, byte(n))
	case n < 0x7f00:
		dst = append(dst, byte(n>>8|128), byte(n))
	default:
		dst = append(dst, 255, byte(n-0x7f00), byte((n-0x7f00)>>8))
	}
	p.code()
	p.literal.prepare(n, mostLog)
	p.offsets.prepare(n, mostOffsetLog)
	p.length.prepare(n, mostLog)
	kinds := len(dst)
	dst = append(dst, 0)
	for i, t := range [...]*fseTable{&p.literal, &p.offsets, &p.length} {
		kind := byte(describedTable)
		if t.log > 0 {
			dst = t.appendTable(dst)
		} else {
			kind, dst = tableOfOne, append(dst, byte(t.symbols-1))
		}
		dst[kinds] |= kind << (6 - 2*i)
	}
	if len(dst) > len(room) { // tables need little, so this is a block of little
		return dst, false
	}
	end := p.stream(room, len(dst))
	return room[:max(end, 0)], end > 0
}

// code finds the codes of the sequences and counts them.
func (p *packer) code() {
	p.literal.count()
	p.offsets.count()
	p.length.count()
	for i := range p.sequences {
		s := &p.sequences[i]
		l, m, o := literalCode(s.literals)&63, lengthCode(s.match)&63, uint8(bits.Len32(s.offset)-1)&63
		s.literalCode, s.lengthCode, s.offsetCode = l, m, o
		p.literal.counts[l]++
		p.offsets.counts[o]++
		p.length.counts[m]++
		lb, mb := literalBits[l], lengthBits[m]
		w := bitWriter{}.put(uint64(s.literals), uint(lb)).put(uint64(s.match), uint(mb)).put(uint64(s.offset), uint(o))
		s.rest, s.bits = w.word, uint8(w.n)
	}
}

// mostWord is what a word may write behind the bytes that count.
const mostWord = 8

// bitWriter writes bits from the lowest of the first byte on; a reader begins at the end. It is passed by value, so that it
// stays in registers.
type bitWriter struct {
	word uint64
	n    uint // bits in it
	at   int  // where in the output it goes
}

// put adds the n lowest bits of v.
func (w bitWriter) put(v uint64, n uint) bitWriter {
	w.word |= v & (1<<(n&63) - 1) << (w.n & 63)
	w.n += n
	return w
}

// flush writes whole bytes; less than 8 bits are left.
func (w bitWriter) flush(out []byte) bitWriter {
	binary.LittleEndian.PutUint64(out[w.at:], w.word)
	w.at += int(w.n >> 3)
	w.word >>= w.n &^ 7 & 63
	w.n &= 7
	return w
}

// stream writes the sequences from out[at] on, the last one first, and returns the end; 0 when there is no place for them.
func (p *packer) stream(out []byte, at int) int {
	literal, offsets, length := &p.literal, &p.offsets, &p.length
	last := len(p.sequences) - 1
	s := &p.sequences[last]
	l, o, m := literal.first(s.literalCode), offsets.first(s.offsetCode), length.first(s.lengthCode)
	if at > len(out)-2*mostWord {
		return 0
	}
	w := s.put(bitWriter{at: at}).flush(out)
	for i := last - 1; i >= 0; i-- {
		if w.at > len(out)-2*mostWord {
			return 0
		}
		s := &p.sequences[i]
		w, o = offsets.next(w, o, s.offsetCode) // all three are at most 26 bits
		w, m = length.next(w, m, s.lengthCode)
		w, l = literal.next(w, l, s.literalCode)
		if w.n+uint(s.bits) > 63 {
			w = w.flush(out)
		}
		w = s.put(w).flush(out)
	}
	w = w.put(uint64(m), length.log).put(uint64(o), offsets.log).put(uint64(l), literal.log)
	w = w.put(1, 1) // where a reader begins
	w.n += 7
	if w.at > len(out)-mostWord {
		return 0
	}
	return w.flush(out).at
}

// put adds what tells s from others of its codes.
func (s *sequence) put(w bitWriter) bitWriter {
	w.word |= s.rest << (w.n & 63)
	w.n += uint(s.bits)
	return w
}

// first is the state after the last symbol, with which coding begins.
func (t *fseTable) first(symbol uint8) uint32 {
	step := &t.steps[symbol&63]
	n := (step.shed + 1<<15) >> 16
	return uint32(t.states[(int32((n<<16-step.shed)>>n)+step.base)&(1<<mostLog-1)])
}

// next codes a symbol that comes before those in state, and returns the state after it.
func (t *fseTable) next(w bitWriter, state uint32, symbol uint8) (bitWriter, uint32) {
	step := t.steps[symbol&63]
	n := (state + step.shed) >> 16 & 31
	w.word |= uint64(state&(1<<n-1)) << (w.n & 63)
	w.n += uint(n)
	return w, uint32(t.states[(int32(state>>n)+step.base)&(1<<mostLog-1)])
}
