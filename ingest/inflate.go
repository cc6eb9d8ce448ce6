package ingest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/headgate-io/headgate/event"
)

// atOnce is how many bytes of a body are kept while it is not known how many there will be. One that has more is decoded
// twice: to count, and then into memory of its size. So a bomb costs no memory but this and the decoder's (8 MiB for zstd,
// 16 MiB for br, at most), whatever the limit is.
const atOnce = 1 << 20

// inflate undoes one coding of src into dst, at most limit bytes. Decoders bound neither their output nor its ratio, and
// sizes that src declares may be wrong: what comes out is counted.
func (c coding) inflate(dst *buffer, src []byte, limit int64) error {
	if c == snappyCoding && !bytes.HasPrefix(src, framedSnappy) {
		return c.problem(unsnap(dst, src, limit))
	}
	d := c.takeInflater()
	err := dst.decode(d, src, limit, c.likely(src))
	c.giveInflater(d)
	return c.problem(err)
}

// What a body says of its size is believed, until it turns out otherwise, up to so many bytes for each that was sent,
// and so many at all. A lie then costs no more than sending that much.
const (
	believedRatio = 32
	believedMost  = 16 << 20
)

// likely returns how large src says it is, 0 when it does not or cannot be believed: the last gzip member (RFC 1952
// section 2.3.1), or the first zstd frame (RFC 8878 section 3.1.1.1.4).
func (c coding) likely(src []byte) (size int64) {
	switch {
	case c == gzipCoding && len(src) >= 4:
		size = int64(binary.LittleEndian.Uint32(src[len(src)-4:]))
	case c == zstdCoding:
		var h zstd.Header
		if h.Decode(src) == nil && h.HasFCS {
			size = int64(min(h.FrameContentSize, believedMost+1))
		}
	}
	if size > min(believedMost, int64(len(src))*believedRatio) {
		return 0
	}
	return size
}

// decode puts what d makes of src into b; likely is how much that will be, as far as is known.
func (b *buffer) decode(d inflater, src []byte, limit, likely int64) error {
	room := min(limit, max(atOnce, likely))
	if room > atOnce {
		if err := b.account.heavily(); err != nil {
			return err
		}
		if err := b.replace(room); err != nil {
			return err
		}
	}
	err := d.begin(src)
	if err == nil {
		err = b.fill(d, room)
	}
	if err != errOverLimit || limit <= room {
		return err
	}
	if err := b.account.heavily(); err != nil {
		return err
	}
	rest, err := b.measure(d, limit-room-1) // fill has read one too many
	if err != nil {
		return err
	}
	size := room + 1 + rest
	if err = b.replace(size); err == nil {
		err = d.begin(src)
	}
	if err == nil {
		err = b.fill(d, size)
	}
	return err
}

// measure counts what src still has, at most limit bytes, and spoils the memory of b.
func (b *buffer) measure(src io.Reader, limit int64) (size int64, err error) {
	scratch := b.slab.b[:cap(b.slab.b)]
	for idle := 0; idle < mostIdle; idle++ {
		n, err := src.Read(scratch)
		if size += int64(n); size > limit {
			return size, errOverLimit
		}
		if err == io.EOF {
			return size, nil
		}
		if err != nil {
			return size, err
		}
		if n > 0 {
			idle = 0
		}
	}
	return size, io.ErrNoProgress
}

// problem leaves alone what is about limits and blames the rest on the body.
func (c coding) problem(err error) error {
	if _, ok := errors.AsType[*event.Problem](err); ok {
		return err
	}
	switch {
	case err == nil, err == errOverLimit, err == errOverBudget:
		return err
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded): // the latter of a frame that is its own window
		return event.Problemf(event.ZstdWindow, "the largest zstd window is %d bytes", maxWindow)
	}
	kind := &codingNames[c]
	return event.Problemf(kind.bad, "the body is not %s as Content-Encoding says: %v", kind.name, err)
}
