//go:build unix

package ingest

import (
	"io"
	"net"
	"os"
	"syscall"
)

// rawOf returns what a socket is read through without holding memory while nothing is there, nil for another connection.
func rawOf(c net.Conn) syscall.RawConn {
	if tcp, ok := c.(*net.TCPConn); ok {
		if raw, err := tcp.SyscallConn(); err == nil {
			raw.Control(announceRest) // an error shows when it is read
			return raw
		}
	}
	return nil
}

// answerReady is called by RawConn.Read when there may be something to read. It answers the requests that are there, and
// reports false to be called again when more has come. That happens while the poller remembers what comes, so nothing needs to be
// read to find that nothing is there: a Read that begins anew would have to.
func (c *conn) answerReady(fd uintptr) bool {
	for {
		r := smallExchanges.Get().(*smallExchange)
		n, all, err := receive(int(fd), r.in[:])
		for err == syscall.EINTR {
			n, all, err = receive(int(fd), r.in[:])
		}
		if n <= 0 {
			smallExchanges.Put(r)
			switch err {
			case syscall.EAGAIN:
				return false
			case nil:
				c.express.ended = io.EOF
			default:
				c.express.ended = os.NewSyscallError("read", err)
			}
			return true
		}
		c.express.exchange, r.n = r, n
		over, err := c.express.server.next(c)
		if over {
			c.express.ended = err
			return true
		}
		if all {
			return false
		}
	}
}
