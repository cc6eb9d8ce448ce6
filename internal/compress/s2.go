package compress

import (
	"bytes"
	"sync"

	"github.com/klauspost/compress/s2"
)

type s2Coder struct{}

type s2Encoder struct {
	w   *s2.Writer
	out appender
}

var s2Encoders = sync.Pool{New: func() any {
	return &s2Encoder{w: s2.NewWriter(nil, s2.WriterConcurrency(1), s2.WriterBlockSize(window))}
}}

func (s2Coder) append(dst, src []byte) []byte {
	e := s2Encoders.Get().(*s2Encoder)
	e.out.b = dst
	e.w.Reset(&e.out)
	_, _ = e.w.Write(src) // an appender has no errors
	_ = e.w.Close()
	dst, e.out.b = e.out.b, nil
	s2Encoders.Put(e)
	return dst
}

type s2Decoder struct {
	r   *s2.Reader
	src bytes.Reader
}

var s2Decoders = sync.Pool{New: func() any { return &s2Decoder{r: s2.NewReader(nil)} }}

func (s2Coder) appendDecoded(dst, src []byte, limit int) ([]byte, error) {
	s := s2Decoders.Get().(*s2Decoder)
	defer s2Decoders.Put(s)
	s.src.Reset(src)
	defer s.src.Reset(nil)
	s.r.Reset(&s.src)
	return appendAll(dst, s.r, limit)
}
