package compress

import (
	"bytes"
	"sync"

	"github.com/pierrec/lz4/v4"
)

type lz4Coder struct{}

type lz4Encoder struct {
	w   *lz4.Writer
	out appender
}

// Blocks of 256 KiB cut a frame of the default size into equal parts, which are compressed where they lie; the
// format's window of 64 KiB gains nothing from larger ones.
var lz4Encoders = sync.Pool{New: func() any {
	w := lz4.NewWriter(nil)
	err := w.Apply(lz4.ConcurrencyOption(1), lz4.CompressionLevelOption(lz4.Fast), lz4.BlockSizeOption(lz4.Block256Kb), lz4.ChecksumOption(true))
	if err != nil {
		panic("BUG: compress: " + err.Error())
	}
	return &lz4Encoder{w: w}
}}

func (lz4Coder) append(dst, src []byte) []byte {
	e := lz4Encoders.Get().(*lz4Encoder)
	e.out.b = dst
	e.w.Reset(&e.out)
	_, _ = e.w.Write(src) // an appender has no errors
	_ = e.w.Close()
	dst, e.out.b = e.out.b, nil
	lz4Encoders.Put(e)
	return dst
}

// appendDecoded makes a reader for each call. A used one keeps the end of what it decoded as a dictionary, which
// a crafted frame could refer to; and its large buffers are pooled by the library.
func (lz4Coder) appendDecoded(dst, src []byte, limit int) ([]byte, error) {
	r := lz4.NewReader(bytes.NewReader(src))
	out, err := appendAll(dst, r, limit)
	r.Reset(nil) // gives the buffers back
	return out, err
}
