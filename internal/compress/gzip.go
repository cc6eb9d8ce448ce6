package compress

import (
	"bytes"
	"sync"

	"github.com/klauspost/compress/gzip"
)

type gzipCoder struct{}

type gzipEncoder struct {
	w   *gzip.Writer
	out appender
}

var gzipEncoders = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic("BUG: compress: " + err.Error())
	}
	return &gzipEncoder{w: w}
}}

func (gzipCoder) append(dst, src []byte) []byte {
	e := gzipEncoders.Get().(*gzipEncoder)
	e.out.b = dst
	e.w.Reset(&e.out)
	_, _ = e.w.Write(src) // an appender has no errors
	_ = e.w.Close()
	dst, e.out.b = e.out.b, nil
	gzipEncoders.Put(e)
	return dst
}

type gzipDecoder struct {
	r   gzip.Reader
	src bytes.Reader
}

var gzipDecoders = sync.Pool{New: func() any { return new(gzipDecoder) }}

func (gzipCoder) appendDecoded(dst, src []byte, limit int) ([]byte, error) {
	g := gzipDecoders.Get().(*gzipDecoder)
	defer gzipDecoders.Put(g)
	g.src.Reset(src)
	defer g.src.Reset(nil)
	if err := g.r.Reset(&g.src); err != nil {
		return dst, err
	}
	return appendAll(dst, &g.r, limit)
}
