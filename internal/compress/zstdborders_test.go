package compress

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// step is some literals, and a match from so far back; 0, behind literals: as far as the one before.
type step struct{ literals, match, back int }

// blockOf returns a frame whose last block is those steps and some literals more, of so many kinds, and its content. What the packer finds
// in data hardly ever lies on the borders of the format's codes; so it is given what it would have found.
func blockOf(t *testing.T, p *packer, steps []step, tail, kinds int) (frame, content []byte) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(len(steps)), uint64(tail)))
	const before = 1000 // bytes of a raw block
	for range before {
		content = append(content, byte(r.Uint32()))
	}
	var literals []byte
	take := func(n int) {
		for range n {
			literals = append(literals, byte(r.IntN(kinds)))
		}
		content = append(content, literals[len(literals)-n:]...)
	}
	p.sequences = p.sequences[:0]
	back := 1
	for _, s := range steps {
		take(s.literals)
		offset := uint32(sameOffset)
		if s.back > 0 {
			back, offset = s.back, uint32(s.back+leastMatch)
		}
		for range s.match {
			content = append(content, content[len(content)-back])
		}
		p.sequences = append(p.sequences, sequence{literals: uint32(s.literals), match: uint32(s.match - leastMatch), offset: offset})
	}
	take(tail)
	block := func(kind, size, last int) {
		h := last | kind<<1 | size<<3
		frame = append(frame, byte(h), byte(h>>8), byte(h>>16))
	}
	frame = frameHeader(nil, len(content))
	block(rawBlock, before, 0)
	frame = append(frame, content[:before]...)
	packed := p.appendLiterals(make([]byte, 0, 2*mostBlock), literals)
	packed, ok := p.appendSequences(packed, packed[:cap(packed)])
	if !ok || len(packed) > mostBlock {
		t.Fatalf("%d bytes become %d", len(content)-before, len(packed))
	}
	block(compressedBlock, len(packed), 1)
	return binary.LittleEndian.AppendUint32(append(frame, packed...), uint32(xxhash.Sum64(content))), content
}

func TestBordersOfTheFormat(t *testing.T) {
	p := new(packer)
	back := func(name string, steps []step, tail, kinds int) {
		t.Helper()
		frame, content := blockOf(t, p, steps, tail, kinds)
		if !bytes.Equal(unpack(t, frame), content) {
			t.Errorf("%s: other data", name)
		}
	}
	for _, n := range []int{1, 126, 127, 128, 129, 0x7eff, 0x7f00, 0x7f01, 0x8000} { // sequences
		back(fmt.Sprint(n, " sequences"), repeat(n, step{0, 4, 9}), 0, 1)
		back(fmt.Sprint(n, " sequences, one of them another"), append(repeat(n-1, step{0, 4, 9}), step{0, 4, 500}), 0, 1)
	}
	for _, border := range []int{0, 16, 32, 64, 128, 1 << 10, 1 << 12, 1 << 14, 1 << 15, 1 << 16, mostBlock - 16} {
		for n := max(border-2, 0); n < border+3; n++ {
			for _, kinds := range []int{1, 16, 200} { // one symbol, codes of a Huffman tree, and what is not coded
				back(fmt.Sprint(n, " literals"), []step{{0, 3, 7}}, n, kinds)
				back(fmt.Sprint(n, " literals before a match"), []step{{n, 3, 7}}, 0, kinds)
			}
			back(fmt.Sprint("a match of ", n+leastMatch), []step{{1, n + leastMatch, 0}}, 0, 1)
		}
	}
	back("a match as long as a block", []step{{0, mostBlock, 1}}, 0, 1)
	for n := range 130 { // all that have codes of their own, together
		back(fmt.Sprint("codes of ", n), []step{{n, 3 + n, 5}, {n + 1, 4 + n, 0}, {n, 5 + n, n + 1}}, 1, 200)
	}
}

func repeat(n int, s step) (all []step) {
	for range n {
		all = append(all, s)
	}
	return all
}
