package ingest

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/budget"
)

// A connection that is closed while its client still sends would be reset, and the client would lose the answer that
// says why. So the other direction is read for a while: until nothing comes any more, and at most this long and this much.
const (
	lingerQuiet = 500 * time.Millisecond // twice in a row: once may be that this process got no time
	lingerTime  = 10 * time.Second
	lingerBytes = 16 << 20
)

// conn is a client's connection, known to the roster until it is closed.
type conn struct {
	net.Conn // what is spoken on: the socket, or TLS on top of it
	socket   socket
	secure   *tls.Conn // nil without TLS
	owner    *roster
	client   []byte // address, as text
	addr     netip.Addr
	since    time.Time

	silent atomic.Bool // nothing was read yet, or the handshake is not over
	linger atomic.Bool // the client may still be sending when it is closed
	once   sync.Once

	bodyEnd chunkedEnd  // whether chunked bodies end in the plain way
	express expressConn // how small plain requests are answered

	owed atomic.Int64 // bytes of budget that answers hold until they are sent, which is before the next Read
	from *budget.Budget

	// fault is what the last Read failed with. Only the goroutine that serves the connection uses it: it tells
	// a client that went away from one that sends nonsense.
	fault error
}

// newConn returns a connection that speaks TLS unless secure is nil. Hands are shaken by its first Read, whose deadline
// bounds that.
func newConn(raw net.Conn, owner *roster, secure *tls.Config) *conn {
	c := &conn{socket: socket{Conn: raw}, owner: owner, since: time.Now()}
	c.Conn = &c.socket
	if secure != nil {
		c.secure = tls.Server(&c.socket, secure)
		c.Conn = c.secure
	}
	c.silent.Store(true)
	c.express.untouched = true
	if tcp, ok := raw.RemoteAddr().(*net.TCPAddr); ok {
		c.addr = tcp.AddrPort().Addr().Unmap()
		c.client = c.addr.AppendTo(nil)
	}
	c.socket.armWrite()
	return c
}

// SetReadDeadline implements net.Conn for the goroutine that reads, like that of socket.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.bodyEnd.pause()
	c.express.deadlines++
	return c.socket.SetReadDeadline(t)
}

// owe has the memory of an answer paid for until it is sent.
func (c *conn) owe(from *budget.Budget, n int64) {
	if n > 0 {
		c.from = from
		c.owed.Add(n)
	}
}

func (c *conn) settle() {
	if c.owed.Load() > 0 {
		c.from.Release(c.owed.Swap(0))
	}
}

func (c *conn) Read(p []byte) (int, error) {
	c.settle()
	if c.requestBegins() {
		if err := c.express.server.run(c); err != nil {
			c.fault = err
			return 0, err
		}
	}
	if c.express.exchange != nil {
		n := c.readBuffered(p)
		c.bodyEnd.read(p[:n])
		return n, nil
	}
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.bodyEnd.read(p[:n])
		if c.silent.Load() {
			c.silent.Store(false)
		}
	}
	if err != nil {
		c.fault = err
		if c.secure != nil {
			c.explain()
		}
	}
	return n, err
}

// strange reports whether the client has not come through the handshake.
func (c *conn) strange() bool {
	return c.secure != nil && !c.secure.ConnectionState().HandshakeComplete
}

// explain answers a client that speaks HTTP where it should shake hands.
func (c *conn) explain() {
	var plain tls.RecordHeaderError
	if errors.As(c.fault, &plain) && plain.Conn != nil && 'A' <= plain.RecordHeader[0] && plain.RecordHeader[0] <= 'Z' {
		turnAway(&c.socket, event.Problemf(event.BadFraming, "this port speaks TLS; use https"))
		c.linger.Store(true)
	}
}

// Close closes the connection once; further calls wait for that and do nothing. While a request is answered, it is closed behind that.
func (c *conn) Close() (err error) {
	for was := c.express.state.Load(); ; was = c.express.state.Load() {
		if was == stateClosing || was == stateActive && c.express.state.CompareAndSwap(was, stateClosing) {
			return nil
		}
		if was != stateActive && c.express.state.CompareAndSwap(was, stateClosed) {
			break
		}
	}
	c.once.Do(func() {
		c.settle()
		if c.linger.Load() {
			c.drain()
		}
		err = c.Conn.Close()
		c.owner.forget(c)
	})
	return err
}

// drain says good-bye and reads what still comes, under TLS without deciphering it.
func (c *conn) drain() {
	if c.secure != nil {
		c.secure.CloseWrite() // an error: there was no handshake, or the socket is broken, which shows below
	}
	linger(c.socket.Conn)
}

// linger ends the sending side and reads what still comes.
func linger(raw net.Conn) {
	half, ok := raw.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	began, quiet := time.Now(), 0
	for left := int64(lingerBytes); left > 0 && quiet < 2 && time.Since(began) < lingerTime; {
		raw.SetReadDeadline(time.Now().Add(lingerQuiet))
		n, err := io.CopyN(io.Discard, raw, min(left, lingerBytes/256))
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		if quiet++; n > 0 {
			quiet = 0
		}
		left -= n
	}
}

// kill closes the socket under whoever uses it; the goroutine that serves the connection then comes to its end.
func (c *conn) kill() { c.socket.Conn.Close() }
