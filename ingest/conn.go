package ingest

import (
	"io"
	"net"
	"net/netip"
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
	client netip.Addr
	since  time.Time

	silent atomic.Bool // nothing was read yet
	linger atomic.Bool // the client may still be sending when it is closed
	once   sync.Once

	// fault is what the last Read failed with. Only the goroutine that serves the connection uses it: it tells
	// a client that went away from one that sends nonsense.
	fault error
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.silent.Load() {
		c.silent.Store(false)
	}
	if err != nil {
		c.fault = err
	}
	return n, err
}

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
