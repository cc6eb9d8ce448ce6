package ingest

import (
	"net"
	"sync/atomic"
	"syscall"
)

// expressConn is what express knows of a connection. The goroutine that serves the connection has all of it alone but state.
type expressConn struct {
	server *express // nil: all requests are fasthttp's

	// state is who has the connection, one of the states below: so that nobody closes it before an answer that is being made.
	state atomic.Int32

	// exchange is the request that was read and is not answered yet, nil for none. What of it is not express's is read by fasthttp.
	exchange *smallExchange

	// raw is the TCP socket, of which the poller tells when there is something to read; nil: there is none, and Read waits.
	raw syscall.RawConn

	// onReadable is conn.answerReady, kept since a method value is allocated each time that it is made.
	onReadable func(fd uintptr) bool

	// ended is what answerReady stopped at: nil for a request of fasthttp, else the error of the connection.
	ended error

	// untouched says that fasthttp has read nothing of a next request yet.
	untouched bool

	// deadlines is how many fasthttp has set since the last request was done.
	deadlines int
}

// The states of a connection.
const (
	stateFasthttp = iota // it is fasthttp's, or was not used yet
	stateIdle            // express waits for a next request
	stateActive          // express answers a request
	stateClosing         // express does, and the connection is to be closed behind the answer
	stateClosed
)

// useExpress has express look at the requests of the connection first.
func (c *conn) useExpress(x *express) {
	c.express.server, c.express.raw = x, rawOf(c.socket.Conn)
	if c.express.raw != nil {
		c.express.onReadable = c.answerReady
	}
}

// requestDone notes that fasthttp is done with a request.
func (c *conn) requestDone() { c.express.untouched, c.express.deadlines = true, 0 }

// requestBegins reports whether what is read next is the beginning of a request: fasthttp then sets one deadline, that of idle
// connections, and where it has bytes of the request already a second one.
func (c *conn) requestBegins() bool {
	e := &c.express
	begins := e.untouched && e.deadlines == 1
	e.untouched = false
	return begins && e.server != nil
}

// readBuffered copies to p what express has read and not taken.
func (c *conn) readBuffered(p []byte) int {
	r := c.express.exchange
	n := copy(p, r.in[r.handed:r.n])
	if r.handed += n; r.handed == r.n {
		c.releaseExchange(nil)
	}
	return n
}

// releaseExchange gives back the memory of the last request.
func (c *conn) releaseExchange(doc []byte) {
	c.express.exchange.release(doc)
	c.express.exchange = nil
}

// end has fasthttp close the connection.
func (c *conn) end() error {
	c.express.state.Store(stateFasthttp)
	return net.ErrClosed
}
