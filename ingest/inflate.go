package ingest

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/headgate-io/headgate/event"
)

// maxWindow is the largest window a zstd frame may ask for: what RFC 8878 (3.1.1.1.2) tells every decoder to support.
const maxWindow = 8 << 20

var (
	gzipReaders sync.Pool // of *gzip.Reader
	zstdReaders sync.Pool // of *zstd.Decoder
)

// inflate undoes one coding of src into dst, at most limit bytes. Several gzip members or zstd frames in a row are
// one body. Decoders bound neither their output nor its ratio: the limit here does.
func (c coding) inflate(dst *buffer, src []byte, limit int64) error {
	if c == gzipCoding {
		return gunzip(dst, src, limit)
	}
	return unzstd(dst, src, limit)
}

func gunzip(dst *buffer, src []byte, limit int64) error {
	r, ok := gzipReaders.Get().(*gzip.Reader)
	if !ok {
		r = new(gzip.Reader)
	}
	err := r.Reset(bytes.NewReader(src))
	if err == io.EOF {
		err = io.ErrUnexpectedEOF // not even one member
	}
	if err == nil {
		err = dst.fill(r, limit)
	}
	gzipReaders.Put(r)
	return codingError(err, event.BadGzip, "gzip")
}

func unzstd(dst *buffer, src []byte, limit int64) error {
	r, ok := zstdReaders.Get().(*zstd.Decoder)
	if !ok {
		var err error
		r, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			panic("BUG: ingest: zstd decoder: " + err.Error())
		}
	}
	err := r.Reset(bytes.NewReader(src))
	if err == nil {
		err = dst.fill(r, limit)
	}
	if err == nil && len(src) == 0 {
		err = io.ErrUnexpectedEOF // not even one frame
	}
	if forget := r.Reset(nil); forget == nil {
		zstdReaders.Put(r)
	}
	if errors.Is(err, zstd.ErrWindowSizeExceeded) {
		return event.Problemf(event.ZstdWindow, "the largest zstd window is %d bytes", maxWindow)
	}
	return codingError(err, event.BadZstd, "zstd")
}

// codingError leaves alone what is about limits and blames the rest on the body.
func codingError(err error, code event.Code, name string) error {
	if err == nil || err == errOverLimit || err == errOverBudget {
		return err
	}
	return event.Problemf(code, "the body is not %s as Content-Encoding says: %v", name, err)
}
