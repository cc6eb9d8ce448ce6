// Package wire is the byte format of frames: how events are delimited, the metadata block that travels with
// them, and how both lie in a frame and frames in a run. It uses the standard library only.
package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
)

// What a reader can meet. Errors of this package wrap one of them.
var (
	// ErrTruncated: the input ends inside an event, a block or a frame.
	ErrTruncated = errors.New("truncated")
	// ErrMalformed: the input is not what a writer of this package makes.
	ErrMalformed = errors.New("malformed")
)

// Framing is how events are told apart in a frame or a request.
type Framing uint8

const (
	// NDJSON ends each event with a newline. No event contains one.
	NDJSON Framing = iota
	// Prefixed puts the length of each event in front of it, as an unsigned varint (LEB128).
	Prefixed
)

// Media types of the framings.
const (
	TypeNDJSON   = "application/x-ndjson"
	TypePrefixed = "application/vnd.headgate.events"
)

// ContentType returns the media type that names the framing.
func (f Framing) ContentType() string {
	if f == Prefixed {
		return TypePrefixed
	}
	return TypeNDJSON
}

// FramingOf is the inverse of ContentType; case and parameters are ignored, ok is false for any other type.
func FramingOf(contentType string) (f Framing, ok bool) {
	name, _, _ := strings.Cut(contentType, ";")
	switch strings.ToLower(strings.TrimSpace(name)) {
	case TypeNDJSON:
		return NDJSON, true
	case TypePrefixed:
		return Prefixed, true
	}
	return 0, false
}

// AppendEvent appends one event to dst. With NDJSON data must not contain a newline.
func AppendEvent(dst, data []byte, f Framing) []byte {
	if f == Prefixed {
		return append(binary.AppendUvarint(dst, uint64(len(data))), data...)
	}
	return append(append(dst, data...), '\n')
}

// NextEvent returns the first event of src and what follows it, both views. It is called while src is not
// empty; an event that does not end within src is ErrTruncated.
func NextEvent(src []byte, f Framing) (data, rest []byte, err error) {
	if f == Prefixed {
		n, size := binary.Uvarint(src)
		switch {
		case size < 0:
			return nil, src, ErrMalformed
		case size == 0 || n > uint64(len(src)-size):
			return nil, src, ErrTruncated
		}
		end := size + int(n)
		return src[size:end:end], src[end:], nil
	}
	end := bytes.IndexByte(src, '\n')
	if end < 0 {
		return nil, src, ErrTruncated
	}
	return src[:end:end], src[end+1:], nil
}
