package ingest

import (
	"bytes"
	"errors"
	"io"

	"github.com/klauspost/compress/snappy"
)

// snappyInflater reads the framing format of snappy, chunks of at most 64 KiB. The other format is unsnap's.
type snappyInflater struct {
	src    bytes.Reader
	framed *snappy.Reader
}

// framedSnappy is what the framing format begins with, its stream identifier. A block that did would claim to have 895
// bytes and to begin with a NUL and a reference to bytes before it.
var framedSnappy = []byte("\xff\x06\x00\x00sNaPpY") // read only

func (d *snappyInflater) begin(src []byte) error {
	d.src.Reset(src)
	d.framed.Reset(&d.src)
	return nil
}

func (d *snappyInflater) Read(p []byte) (int, error) { return d.framed.Read(p) }

var errSnappySize = errors.New("a block of that size cannot hold as many bytes as it says")

// unsnap undoes the block format of snappy into dst. A block begins with the number of its bytes, which can be too large
// in two ways: for us, and to be true, as an element of three bytes stands for 64 at most. What is left may be believed.
func unsnap(dst *buffer, src []byte, limit int64) error {
	size, err := snappy.DecodedLen(src)
	switch {
	case len(src) == 0:
		return io.ErrUnexpectedEOF
	case err != nil:
		return err
	case int64(size) > limit:
		return errOverLimit
	case int64(size) > int64(len(src))*64/3:
		return errSnappySize
	}
	if size > heavyBytes {
		if err = dst.account.heavily(); err != nil {
			return err
		}
	}
	if err = dst.replace(int64(size)); err != nil {
		return err
	}
	out, err := snappy.Decode(dst.slab.b[:size], src)
	if err == nil {
		dst.slab.b = out
	}
	return err
}
