package compress

import (
	"encoding/binary"
	"slices"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/huff0"
)

// The packer writes zstd frames (RFC 8878) of the size that the library's fastest level makes, at four fifths of its cost: it
// compresses where the data lies instead of in a copy, and first of all expects what was at the same distance before, as
// in text of many similar lines. Its frames have one segment, the size of their content, and a checksum.
//
// What is smaller than packLeast is left to the library, which begins a frame at no cost; what is larger than packMost, too: a
// reader needs as much memory as a frame of one segment has content.
const (
	packLeast = 16 << 10
	packMost  = window
)

// mostBlock is how many bytes of content a block of zstd has at most.
const mostBlock = 128 << 10

// packer holds what one frame at a time needs.
type packer struct {
	places    [1 << placesLog]uint32 // where in the frame six bytes of this hash stood last; 0: nowhere
	literals  [mostBlock + wildCopy]byte
	sequences []sequence // of a block
	rep       int        // the last offset

	huffman                  huff0.Scratch
	literal, offsets, length fseTable // how many literals, how far back, how long a match
}

// append appends src as one frame; len(src) is within packLeast and packMost.
func (p *packer) append(dst, src []byte) []byte {
	dst = frameHeader(dst, len(src))
	clear(p.places[:])
	p.rep = 1 // RFC 8878, 3.1.1.5
	for from := 0; from < len(src); from += mostBlock {
		dst = p.block(dst, src, from, min(from+mostBlock, len(src)))
	}
	return binary.LittleEndian.AppendUint32(dst, uint32(xxhash.Sum64(src)))
}

// frameHeader appends the header of a frame with n bytes of content, n from 256 on (RFC 8878, 3.1.1.1).
func frameHeader(dst []byte, n int) []byte {
	const oneSegment, checksum = 1 << 5, 1 << 2
	dst = append(dst, 0x28, 0xb5, 0x2f, 0xfd)
	if n < 1<<16+256 {
		return binary.LittleEndian.AppendUint16(append(dst, 1<<6|oneSegment|checksum), uint16(n-256))
	}
	return binary.LittleEndian.AppendUint32(append(dst, 2<<6|oneSegment|checksum), uint32(n))
}

// Kinds of blocks.
const (
	rawBlock        = 0
	compressedBlock = 2
	blockHeader     = 3 // bytes
)

// block appends src[from:to] as one block: raw, when it does not become smaller.
func (p *packer) block(dst, src []byte, from, to int) []byte {
	rep := p.rep
	literals := p.find(src[:to], from)
	head, size := len(dst), to-from
	dst = slices.Grow(dst, blockHeader+size+mostWord)[:head+blockHeader]
	dst = p.appendLiterals(dst, literals)
	room := dst[:min(cap(dst), head+blockHeader+size+mostWord)]
	dst, ok := p.appendSequences(dst, room)
	kind := compressedBlock
	if packed := len(dst) - head - blockHeader; !ok || packed >= size {
		p.rep = rep // of a raw block a reader learns no offsets
		kind, dst = rawBlock, append(dst[:head+blockHeader], src[from:to]...)
	}
	header := kind<<1 | (len(dst)-head-blockHeader)<<3
	if to == len(src) {
		header |= 1 // the last one
	}
	dst[head], dst[head+1], dst[head+2] = byte(header), byte(header>>8), byte(header>>16)
	return dst
}

// Kinds of literals (RFC 8878, 3.1.1.3.1).
const (
	rawLiterals     = 0
	sameLiterals    = 1
	huffmanLiterals = 2
)

// fewLiterals are not worth a table, and fourStreams of them are decoded faster in parts.
const (
	fewLiterals = 64
	fourStreams = 1 << 10
)

// appendLiterals appends the section of the literals.
func (p *packer) appendLiterals(dst, literals []byte) []byte {
	n := len(literals)
	var packed []byte
	err := error(huff0.ErrIncompressible)
	p.huffman.Reuse = huff0.ReusePolicyNone
	switch {
	case n >= fourStreams:
		packed, _, err = huff0.Compress4X(literals, &p.huffman)
	case n >= fewLiterals:
		packed, _, err = huff0.Compress1X(literals, &p.huffman)
	}
	switch {
	case err == huff0.ErrUseRLE:
		return append(literalSize(dst, sameLiterals, n), literals[0])
	case err != nil || len(packed)+4 >= n:
		return append(literalSize(dst, rawLiterals, n), literals...)
	}
	return append(packedSize(dst, n, len(packed)), packed...)
}

// literalSize appends the header of n literals that are not coded.
func literalSize(dst []byte, kind, n int) []byte {
	switch {
	case n < 1<<5:
		return append(dst, byte(kind|n<<3))
	case n < 1<<12:
		return append(dst, byte(kind|1<<2|n<<4), byte(n>>4))
	}
	return append(dst, byte(kind|3<<2|n<<4), byte(n>>4), byte(n>>12))
}

// packedSize appends the header of n literals that are coded in so many bytes, less than n of them.
func packedSize(dst []byte, n, packed int) []byte {
	bits, format := 10, 0
	switch {
	case n >= 1<<14:
		bits, format = 18, 3
	case n >= fourStreams:
		bits, format = 14, 2
	}
	header := uint64(huffmanLiterals|format<<2|n<<4) | uint64(packed)<<(4+bits)
	for i := 0; i < 4+2*bits; i += 8 {
		dst = append(dst, byte(header>>i))
	}
	return dst
}
