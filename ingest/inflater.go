package ingest

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	brotli "github.com/molecule-man/go-brrr"
)

// inflater undoes one coding of a body that is there whole. It ends in io.EOF only when the body ended properly with it.
type inflater interface {
	io.Reader
	// begin makes it read src from the start, whatever it read before; with nil it forgets what it has read.
	begin(src []byte) error
}

// inflaters are kept for reuse, by coding: they hold windows and tables.
var inflaters [allCodings]sync.Pool

func (c coding) takeInflater() inflater {
	if d, ok := inflaters[c].Get().(inflater); ok {
		return d
	}
	switch c {
	case gzipCoding:
		return new(gzipInflater)
	case deflateCoding:
		return new(deflateInflater)
	case zstdCoding:
		return newZstdInflater()
	case brotliCoding:
		return new(brotliInflater)
	case snappyCoding:
		return &snappyInflater{framed: snappy.NewReader(nil)}
	}
	panic("BUG: ingest: no inflater for a coding")
}

// giveInflater takes back one that has not panicked.
func (c coding) giveInflater(d inflater) {
	if d.begin(nil) == nil {
		inflaters[c].Put(d)
	}
}

// whole turns an end before that of src into an error, for formats that do not go on after it.
func whole(err error, src *bytes.Reader) error {
	if err == io.EOF && src.Len() > 0 {
		return errTrailing
	}
	return err
}

var errTrailing = errors.New("more bytes behind its end")

// gzipInflater reads members one after the other (RFC 1952 section 2.2).
type gzipInflater struct {
	src    bytes.Reader
	reader gzip.Reader
}

func (d *gzipInflater) begin(src []byte) error {
	d.src.Reset(src)
	if src == nil {
		return nil
	}
	return unexpected(d.reader.Reset(&d.src))
}

func (d *gzipInflater) Read(p []byte) (int, error) { return d.reader.Read(p) }

// unexpected is for ends before anything has begun.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// deflateInflater reads the zlib format, which is what the coding deflate is (RFC 9110 section 8.4.1.2), and the bare
// deflate format, which clients send in its place.
type deflateInflater struct {
	src       bytes.Reader
	zlib, raw io.ReadCloser
	now       io.Reader // one of the two
}

func (d *deflateInflater) begin(src []byte) (err error) {
	d.src.Reset(src)
	switch {
	case src == nil:
		return nil
	case !zlibHeader(src):
		if d.raw == nil {
			d.raw = flate.NewReader(&d.src)
		} else {
			err = d.raw.(flate.Resetter).Reset(&d.src, nil)
		}
		d.now = d.raw
	case d.zlib == nil:
		d.zlib, err = zlib.NewReader(&d.src)
		d.now = d.zlib
	default:
		err = d.zlib.(zlib.Resetter).Reset(&d.src, nil)
		d.now = d.zlib
	}
	return unexpected(err)
}

// zlibHeader reports whether src begins as zlib does (RFC 1950 section 2.2). A bare deflate stream that does would begin
// with a stored block whose padding is not zero, which nobody writes.
func zlibHeader(src []byte) bool {
	return len(src) >= 2 && src[0]&0x0f == 8 && src[0]>>4 <= 7 && (int(src[0])<<8|int(src[1]))%31 == 0
}

func (d *deflateInflater) Read(p []byte) (int, error) {
	n, err := d.now.Read(p)
	return n, whole(err, &d.src)
}

// maxWindow is the largest window a zstd frame may ask for: what RFC 8878 (3.1.1.1.2) tells every decoder to support,
// and RFC 9659 every encoder of a body to stay within.
const maxWindow = 8 << 20

// zstdInflater reads frames one after the other.
type zstdInflater struct {
	src    bytes.Reader
	reader *zstd.Decoder
	given  int64 // bytes it has made
}

// hollow is how many bytes a zstd body may have beyond twice its content. Frames without content take the decoder 60 ns a
// byte: a body of 16 MiB of them would keep a core busy for a second.
const hollow = 1 << 20

var errHollow = errors.New("frame after frame without content")

// zstdSource is what the decoder of d reads from.
type zstdSource zstdInflater

// Read implements io.Reader.
func (d *zstdSource) Read(p []byte) (int, error) {
	if d.src.Size()-int64(d.src.Len()) > 2*d.given+hollow {
		return 0, errHollow
	}
	return d.src.Read(p)
}

func newZstdInflater() *zstdInflater {
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true),
		zstd.WithDecodeBuffersBelow(0))
	if err != nil {
		panic("BUG: ingest: zstd decoder: " + err.Error())
	}
	return &zstdInflater{reader: r}
}

func (d *zstdInflater) begin(src []byte) error {
	if src == nil {
		return d.reader.Reset(nil)
	}
	if len(src) == 0 {
		return io.ErrUnexpectedEOF // not even one frame
	}
	d.src.Reset(src)
	d.given = 0
	return d.reader.Reset((*zstdSource)(d))
}

func (d *zstdInflater) Read(p []byte) (int, error) {
	n, err := d.reader.Read(p)
	d.given += int64(n)
	return n, err
}

type brotliInflater struct {
	src    bytes.Reader
	reader brotli.Reader
}

func (d *brotliInflater) begin(src []byte) error {
	d.src.Reset(src)
	d.reader.Reset(&d.src)
	return nil
}

func (d *brotliInflater) Read(p []byte) (int, error) {
	n, err := d.reader.Read(p)
	return n, whole(err, &d.src)
}
