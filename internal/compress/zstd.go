package compress

import (
	"bytes"
	"errors"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// window fits a frame of the default size, 512 KiB: larger ones would cost memory in every pooled encoder
// and in every reader, and gain next to nothing on events.
const window = 512 << 10

type zstdCoder struct{}

var zstdEncoders = sync.Pool{New: func() any {
	e, err := zstd.NewWriter(nil,
		zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderCRC(true),
		zstd.WithWindowSize(window))
	if err != nil {
		panic("BUG: compress: " + err.Error())
	}
	return e
}}

var packers = sync.Pool{New: func() any { return new(packer) }}

func (zstdCoder) append(dst, src []byte) []byte {
	if packLeast <= len(src) && len(src) <= packMost {
		p := packers.Get().(*packer)
		dst = p.append(dst, src)
		packers.Put(p)
		return dst
	}
	e := zstdEncoders.Get().(*zstd.Encoder)
	dst = e.EncodeAll(src, dst)
	zstdEncoders.Put(e)
	return dst
}

// zstdDecoder decodes as a stream: only that counts output exactly. WithDecodeBuffersBelow(0) keeps the
// library from decoding small inputs in one go, which would let a bomb of a few KiB through.
type zstdDecoder struct {
	d   *zstd.Decoder
	src bytes.Reader
}

var zstdDecoders = sync.Pool{New: func() any {
	d, err := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(MaxWindow),
		zstd.WithDecodeBuffersBelow(0))
	if err != nil {
		panic("BUG: compress: " + err.Error())
	}
	return &zstdDecoder{d: d}
}}

func (zstdCoder) appendDecoded(dst, src []byte, limit int) ([]byte, error) {
	z := zstdDecoders.Get().(*zstdDecoder)
	defer zstdDecoders.Put(z)
	z.src.Reset(src)
	defer z.src.Reset(nil)
	if err := z.d.Reset(&z.src); err != nil {
		return dst, err
	}
	out, err := appendAll(dst, z.d, limit)
	if errors.Is(err, zstd.ErrWindowSizeExceeded) {
		err = ErrWindow
	}
	return out, err
}
