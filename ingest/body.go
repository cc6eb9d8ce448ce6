package ingest

import (
	"errors"
	"io"
	"os"
	"time"

	"github.com/headgate-io/headgate/event"
)

// A body must come at this rate at least, and may take slack whatever its size.
const (
	slowest = 64 << 10 // bytes per second
	slack   = 5 * time.Second
)

// bodyTime is how long a body of n bytes may take.
func bodyTime(n int64) time.Duration {
	return max(slack, time.Duration(n)*time.Second/slowest)
}

// body reads the body of one HTTP/1.1 request. fasthttp's stream ends in a plain io.EOF also where the client
// went away; here io.EOF means that the body is whole.
type body struct {
	conn  *conn
	src   io.Reader
	want  int64 // announced bytes; -1: chunked
	got   int64
	now   time.Time
	until time.Time     // the body must be there
	pause time.Duration // longest wait for the next byte
	odd   bool          // it was chunked and did not end in the plain way
}

// Read implements io.Reader; errors are *event.Problem.
func (b *body) Read(p []byte) (int, error) {
	if b.got > 1 { // the first byte was there before: no time has passed
		b.now = time.Now()
	}
	deadline := b.now.Add(b.pause)
	if b.until.Before(deadline) {
		deadline = b.until
	}
	b.conn.SetReadDeadline(deadline)
	n, err := b.src.Read(p)
	b.got += int64(n)
	if err == nil || err == io.EOF && b.whole() {
		if err != nil && b.want < 0 {
			b.odd = !b.conn.bodyEnd.end()
		}
		return n, err
	}
	return n, b.problem(err)
}

func (b *body) whole() bool {
	if b.want < 0 {
		return b.conn.fault == nil
	}
	return b.got == b.want
}

// problem says what a failed read means. When the socket did not fail it is the client's framing.
func (b *body) problem(err error) *event.Problem {
	switch {
	case errors.Is(b.conn.fault, os.ErrDeadlineExceeded):
		return event.Problemf(event.RequestTimeout, "the body came too slowly; nothing of it is stored")
	case b.conn.fault != nil, err == io.EOF:
		return event.Problemf(event.IncompleteBody, "the body broke off after %d bytes; nothing of it is stored", b.got)
	}
	return event.Problemf(event.BadFraming, "the chunks of the body are broken after %d bytes; nothing of it is stored", b.got)
}
