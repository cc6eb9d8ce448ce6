package ingest

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// A connection that is closed while its client still sends would be reset, and the client would lose the answer that
// says why. So the other direction is read for a while, at most this long and this much.
const (
	lingerTime  = time.Second
	lingerBytes = 16 << 20
)

// conn is a client's connection, known to its listener until it is closed.
type conn struct {
	net.Conn
	owner  *listener
	client []byte // address, as text
	addr   netip.Addr
	since  time.Time

	silent atomic.Bool // nothing was read yet
	linger atomic.Bool // the client may still be sending when it is closed
	once   sync.Once

	// fault is what the last Read failed with. Only the goroutine that serves the connection uses it: it tells
	// a client that went away from one that sends nonsense.
	fault error

	// readBy is when a Read has to be over, and readSet the deadline of the socket, which may be earlier; zero for
	// none. Setting one costs as much as reading a small request, so that is done only by a Read that needs it, and
	// one that comes too early is put off when it comes. The goroutine that serves the connection has both alone.
	readBy, readSet time.Time
}

// SetReadDeadline implements net.Conn for the goroutine that reads: it does not end a Read in progress.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.readBy = t
	return nil
}

func (c *conn) Read(p []byte) (int, error) {
	if !c.readBy.IsZero() && (c.readSet.IsZero() || c.readBy.Before(c.readSet)) {
		c.armRead()
	}
	n, err := c.Conn.Read(p)
	for n == 0 && c.early(err) {
		c.armRead()
		n, err = c.Conn.Read(p)
	}
	if n > 0 && c.silent.Load() {
		c.silent.Store(false)
	}
	if err != nil {
		c.fault = err
	}
	return n, err
}

// armRead sets the deadline of the socket. An error will be that of the Read, too.
func (c *conn) armRead() {
	c.readSet = c.readBy
	c.Conn.SetReadDeadline(c.readBy)
}

// early reports whether err is a deadline that does not hold any more.
func (c *conn) early(err error) bool {
	return err != nil && errors.Is(err, os.ErrDeadlineExceeded) && (c.readBy.IsZero() || time.Now().Before(c.readBy))
}

// writeTimeout is how long a client may at least take for an answer. The deadline of the socket is put off when it
// comes, once for each Write, so that no answer sets it; it may take up to twice as long.
const writeTimeout = 10 * time.Second

func (c *conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		c.armWrite()
		var more int
		more, err = c.Conn.Write(p[n:])
		n += more
	}
	return n, err
}

func (c *conn) armWrite() { c.Conn.SetWriteDeadline(time.Now().Add(writeTimeout)) }

// Close closes the connection once; further calls wait for that and do nothing.
func (c *conn) Close() (err error) {
	c.once.Do(func() {
		if c.linger.Load() {
			c.drain()
		}
		err = c.Conn.Close()
		c.owner.forget(c)
	})
	return err
}

func (c *conn) drain() {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		c.Conn.SetReadDeadline(time.Now().Add(lingerTime))
		io.CopyN(io.Discard, c.Conn, lingerBytes)
	}
}

// kill closes the socket under whoever uses it; the goroutine that serves the connection then comes to its end.
func (c *conn) kill() { c.Conn.Close() }
