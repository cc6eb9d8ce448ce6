// Package session is the byte format of headgate/1, the protocol of producers over QUIC: frames on one bidirectional
// stream, which is one ordered session. docs/quic.md is its specification. It uses the standard library only.
package session

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Protocol is the name that is agreed on in the TLS handshake (ALPN), Version the one in HELLO.
const (
	Protocol = "headgate/1"
	Version  = 1
)

// Type is the kind of a frame.
type Type uint64

// The frames there are. FIN is sent by both sides, the others by one.
const (
	TypeHello  Type = 1
	TypeEvents Type = 2
	TypeFin    Type = 3

	TypeWelcome  Type = 16
	TypeAck      Type = 17
	TypeResult   Type = 18
	TypeReject   Type = 19
	TypeCredit   Type = 20
	TypeSlowDown Type = 21
	TypeGoAway   Type = 22
	TypeError    Type = 23
)

// Level is how far events have come.
type Level uint64

// The levels. Unset in HELLO asks for the stream's default.
const (
	Unset     Level = 0
	Accepted  Level = 1 // in bounded memory
	Durable   Level = 2 // synced to disk
	Delivered Level = 3 // confirmed by the backend
)

// Framing is how the events of an EVENTS frame are told apart, and what they are checked as.
type Framing uint64

// The framings. Prefixed events have their length in front, as a varint.
const (
	Opaque Framing = 0 // prefixed, not checked
	Lines  Framing = 1 // NDJSON
	JSON   Framing = 2 // prefixed, each one JSON value
)

// Coding is how the events of an EVENTS frame are compressed.
type Coding uint64

// The codings.
const (
	Identity Coding = 0
	Gzip     Coding = 1
	Deflate  Coding = 2
	Zstd     Coding = 3
	Brotli   Coding = 4
	Snappy   Coding = 5
)

// Codes of ERROR that this protocol has besides those of HTTP answers.
const (
	UnsupportedVersion = "unsupported_version" // HELLO asks for a version that is not spoken
	UnknownFrame       = "unknown_frame"       // a type that is not known, or not expected now
	BadSequence        = "bad_sequence"        // EVENTS do not follow the ones before
	CreditExceeded     = "credit_exceeded"     // EVENTS without credit
	SessionTaken       = "session_taken"       // another stream has gone on with the session
	SessionIdle        = "session_idle"        // nothing came for too long
	EventsLost         = "events_lost"         // of the stream, that were acknowledged: sessions begin anew
)

// Bounds that hold for every version.
const (
	MostControl = 64 << 10 // bytes of the payload of a frame other than EVENTS
	MostName    = 64       // characters of a session's name
	MostFields  = 32       // of HELLO
	MostHead    = 5 * 10   // bytes of an EVENTS payload before the events
)

// What a reader can meet. Errors of this package wrap one of them.
var (
	// ErrTruncated: the input ends inside a frame.
	ErrTruncated = errors.New("truncated")
	// ErrMalformed: the input is not what a writer of this package makes.
	ErrMalformed = errors.New("malformed")
	// ErrTooLong: a frame announces more than it may have.
	ErrTooLong = errors.New("too long")
)

// ByteReader is what frames are read from, such as a *bufio.Reader.
type ByteReader interface {
	io.Reader
	io.ByteReader
}

// ReadHead reads type and length of the next frame. io.EOF means that the stream has ended between two frames.
func ReadHead(r ByteReader) (t Type, length uint64, err error) {
	first, err := readVarint(r)
	if err != nil {
		return 0, 0, err
	}
	length, err = readVarint(r)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return Type(first), length, err
}

// readVarint reads one varint; io.EOF means that there is none.
func readVarint(r io.ByteReader) (v uint64, err error) {
	for i := range binary.MaxVarintLen64 {
		c, err := r.ReadByte()
		switch {
		case err == io.EOF && i > 0:
			return 0, io.ErrUnexpectedEOF
		case err != nil:
			return 0, err
		case i == binary.MaxVarintLen64-1 && c > 1:
			return 0, fmt.Errorf("varint: %w", ErrMalformed)
		}
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			return v, nil
		}
	}
	return 0, fmt.Errorf("varint: %w", ErrMalformed)
}

// ReadControl reads the payload of a frame other than EVENTS into buf, which grows as bytes arrive and not before.
func ReadControl(r io.Reader, length uint64, buf []byte) ([]byte, error) {
	if length > MostControl {
		return nil, fmt.Errorf("a frame of %d bytes, the limit is %d: %w", length, MostControl, ErrTooLong)
	}
	b := bytes.NewBuffer(buf[:0])
	n, err := io.CopyN(b, r, int64(length))
	if err == io.EOF && uint64(n) < length {
		err = io.ErrUnexpectedEOF
	}
	return b.Bytes(), err
}

// EventsHead is what an EVENTS frame says before its events.
type EventsHead struct {
	First, Count uint64 // sequence of the first event, from 1, and how many there are
	Framing      Framing
	Coding       Coding
}

// ReadEventsHead reads it from the payload of an EVENTS frame, and returns how many of length bytes are left: the events.
func ReadEventsHead(r ByteReader, length uint64) (h EventsHead, left uint64, err error) {
	c := counting{r: r, left: length}
	for _, to := range []*uint64{&h.First, &h.Count, (*uint64)(&h.Framing), (*uint64)(&h.Coding)} {
		if *to, err = readVarint(&c); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return h, 0, err
		}
	}
	if h.First == 0 || h.First+h.Count < h.First {
		return h, 0, fmt.Errorf("sequence: %w", ErrMalformed)
	}
	return h, c.left, nil
}

// counting reads at most left bytes; one more is malformed.
type counting struct {
	r    ByteReader
	left uint64
}

func (c *counting) ReadByte() (byte, error) {
	if c.left == 0 {
		return 0, fmt.Errorf("EVENTS is too short: %w", ErrMalformed)
	}
	c.left--
	return c.r.ReadByte()
}

// AppendEventsHead appends type, length and head of an EVENTS frame, behind which size bytes of events follow.
func AppendEventsHead(dst []byte, h EventsHead, size int) []byte {
	var room [MostHead]byte
	head := room[:0]
	for _, v := range []uint64{h.First, h.Count, uint64(h.Framing), uint64(h.Coding)} {
		head = binary.AppendUvarint(head, v)
	}
	dst = binary.AppendUvarint(dst, uint64(TypeEvents))
	dst = binary.AppendUvarint(dst, uint64(len(head)+size))
	return append(dst, head...)
}
