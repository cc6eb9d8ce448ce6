package ingest

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"
)

// socket is the connection below TLS. Setting a deadline costs as much as reading a small request, so it is done only
// when it is needed, and a deadline that comes too early is put off then. TLS on top would not forgive one: a handshake
// or a write that has failed once fails for good.
type socket struct {
	net.Conn

	// readBy is when a Read has to be over, and readSet the deadline of the socket, which may be earlier; zero for
	// none. The goroutine that serves the connection has both alone.
	readBy, readSet time.Time

	last bool // the deadline for writing is not put off any more

	sent, before int64     // bytes that were written, and that had been when began was
	began        time.Time // of the answer that is written; zero until it is slow
}

// SetReadDeadline implements net.Conn for the goroutine that reads: it does not end a Read in progress.
func (s *socket) SetReadDeadline(t time.Time) error {
	s.readBy = t
	return nil
}

func (s *socket) Read(p []byte) (int, error) {
	s.hurry()
	n, err := s.Conn.Read(p)
	for n == 0 && s.early(err) {
		s.armRead()
		n, err = s.Conn.Read(p)
	}
	return n, err
}

// await is Read by what tries it: once, and again whenever there is something to read.
func (s *socket) await(raw syscall.RawConn, try func(fd uintptr) bool) error {
	s.hurry()
	err := raw.Read(try)
	for s.early(err) {
		s.armRead()
		err = raw.Read(try)
	}
	return err
}

// hurry sets the deadline of the socket where that would come too late.
func (s *socket) hurry() {
	if !s.readBy.IsZero() && (s.readSet.IsZero() || s.readBy.Before(s.readSet)) {
		s.armRead()
	}
}

// armRead sets the deadline of the socket. An error will be that of the Read, too.
func (s *socket) armRead() {
	s.readSet = s.readBy
	s.Conn.SetReadDeadline(s.readBy)
}

// early reports whether err is a deadline that does not hold any more.
func (s *socket) early(err error) bool {
	return err != nil && errors.Is(err, os.ErrDeadlineExceeded) && (s.readBy.IsZero() || time.Now().Before(s.readBy))
}

// writeTimeout is how long a client may at least take for an answer, and it may take longer only at the rate that bodies
// must have. The deadline of the socket is put off when it comes, so that no answer sets it: the time of an answer begins
// when that happens, at most writeTimeout late.
const writeTimeout = 10 * time.Second

// answer begins another answer.
func (s *socket) answer() { s.began = time.Time{} }

func (s *socket) Write(p []byte) (n int, err error) {
	for {
		var more int
		more, err = s.Conn.Write(p[n:])
		n += more
		s.sent += int64(more)
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) || s.last || !s.putOff() {
			return n, err
		}
	}
}

// putOff sets a later deadline for the answer being sent; it reports false when its time is over.
func (s *socket) putOff() bool {
	now := time.Now()
	if s.began.IsZero() {
		s.began, s.before = now, s.sent
	}
	until := s.began.Add(writeTimeout + time.Duration(s.sent-s.before)*time.Second/slowest)
	if !now.Before(until) {
		return false
	}
	s.Conn.SetWriteDeadline(until)
	return true
}

func (s *socket) armWrite() { s.Conn.SetWriteDeadline(time.Now().Add(writeTimeout)) }

// SetWriteDeadline implements net.Conn for TLS, which sets one when it says good-bye: that is the last word.
func (s *socket) SetWriteDeadline(t time.Time) error {
	s.last = true
	return s.Conn.SetWriteDeadline(t)
}
