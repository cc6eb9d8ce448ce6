package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
)

// Codecs by the name that configuration and ContentEncoding give them. The first three have skippable frames,
// which every decompressor passes over: there the block travels. The others carry none.
const (
	codecZstd = "zstd"
	codecLZ4  = "lz4"
	codecS2   = "s2"
)

const (
	skippable  = "\x5d\x2a\x4d\x18" // 0x184D2A5D, a skippable frame of zstd or lz4; then u32 size
	s2Stream   = "\xff\x06\x00\x00S2sTwO"
	s2Skip     = 0x80 // a skippable chunk; then u24 size
	s2MaxBlock = 1<<24 - 1
)

// AppendFrame appends a frame: data, which is compressed with the codec, and the block in a skippable frame of
// the codec. Zstd and lz4 have it in front. S2 has it behind the stream identifier that data begins with (in
// front a reader would take it for damage), and at most 16 MiB of it. Any other codec has no place for a
// block: the frame is data alone.
func AppendFrame(dst []byte, codec string, block, data []byte) []byte {
	switch codec {
	case codecZstd, codecLZ4:
		dst = append(dst, skippable...)
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(block)))
		dst = append(dst, block...)
	case codecS2:
		if len(block) > s2MaxBlock || len(data) < len(s2Stream) {
			panic("BUG: wire: block or data does not fit an s2 frame")
		}
		n := len(block)
		dst = append(dst, data[:len(s2Stream)]...)
		dst = append(dst, s2Skip, byte(n), byte(n>>8), byte(n>>16))
		dst = append(dst, block...)
		data = data[len(s2Stream):]
	}
	return append(dst, data...)
}

// SplitFrame cuts the first frame off a run, frames in a row, and is called while the run is not empty. All
// results are views. data is what a decompressor of the codec takes (for s2 with the block still in it). When
// the run does not begin with a block of ours, as with codecs that carry none, there is no block and no way to
// see where a frame ends: data is then the whole run.
func SplitFrame(run []byte, codec string) (block, data, rest []byte, err error) {
	start, size := findBlock(run, codec)
	if start == 0 {
		return nil, run, nil, nil
	}
	if size > len(run)-start {
		return nil, nil, run, fmt.Errorf("frame: metadata block: %w", ErrTruncated)
	}
	end := start + size
	block = run[start:end:end]
	left, err := dataLen(block)
	if err != nil {
		return nil, nil, run, fmt.Errorf("frame: %w", err)
	}
	begin := end
	if codec == codecS2 {
		begin, left = 0, left-uint64(len(s2Stream)) // the identifier came before the block
	}
	if left > uint64(len(run)-end) {
		return nil, nil, run, fmt.Errorf("frame: data: %w", ErrTruncated)
	}
	last := end + int(left)
	return block, run[begin:last:last], run[last:], nil
}

// findBlock returns where the block of the run's first frame begins and its size, which may be more than
// there is; start 0: there is none.
func findBlock(run []byte, codec string) (start, size int) {
	switch codec {
	case codecZstd, codecLZ4:
		start = len(skippable) + 4
		if !bytes.HasPrefix(run, []byte(skippable)) {
			return 0, 0
		}
	case codecS2:
		start = len(s2Stream) + 4
		if !bytes.HasPrefix(run, []byte(s2Stream)) || len(run) > len(s2Stream) && run[len(s2Stream)] != s2Skip {
			return 0, 0
		}
	default:
		return 0, 0
	}
	if len(run) < start { // which an s2 reader may take for a stream of nothing
		return start, math.MaxInt
	}
	if head := run[start:]; len(head) >= len(magic) && string(head[:len(magic)]) != magic {
		return 0, 0 // somebody else's
	}
	field := binary.LittleEndian.Uint32(run[start-4:])
	if codec == codecS2 {
		field >>= 8 // the first of the four bytes is the chunk's type
	}
	return start, int(min(field, math.MaxInt32))
}

// dataLen reads Meta.DataLen without the rest of the block.
func dataLen(block []byte) (uint64, error) {
	r := reader{b: block}
	r.bytes(uint64(len(magic)))
	if id := r.uvarint(); id != colFrame {
		return 0, fmt.Errorf("metadata block: %w: no frame column in front", ErrMalformed)
	}
	r = reader{b: r.bytes(r.uvarint()), failed: r.failed}
	var m Meta
	m.parsePlace(&r)
	if r.failed {
		return 0, fmt.Errorf("metadata block: frame column: %w", ErrMalformed)
	}
	return m.DataLen, nil
}

// FrameID names a frame: number is that of its first event. Neither gateways' ids nor streams' names contain
// a dot.
func FrameID(gateway, stream string, partition uint32, number uint64) string {
	b := make([]byte, 0, len(gateway)+len(stream)+32)
	b = append(append(b, gateway...), '.')
	b = append(append(b, stream...), '.')
	b = append(strconv.AppendUint(b, uint64(partition), 10), '.')
	return string(strconv.AppendUint(b, number, 10))
}

// RunID names a run of so many frames that begins with the frame called first.
func RunID(first string, frames int) string { return first + "+" + strconv.Itoa(frames) }

// PieceID names a run of one frame that was cut out of a larger one: by its first event, as a frame, and its last.
func PieceID(first string, last uint64) string { return first + "-" + strconv.FormatUint(last, 10) }
