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
			return raw
		}
	}
	return nil
}

// tryBoard reads from the socket into c.ride. It reports false when nothing is there yet.
func (c *conn) tryBoard(fd uintptr) bool {
	r := rides.Get().(*ride)
	n, err := syscall.Read(int(fd), r.in[:])
	for err == syscall.EINTR {
		n, err = syscall.Read(int(fd), r.in[:])
	}
	c.missed = nil
	switch {
	case n > 0:
		c.ride, r.n = r, n
		return true
	case err == syscall.EAGAIN:
		rides.Put(r)
		return false
	case err == nil:
		c.missed = io.EOF
	default:
		c.missed = os.NewSyscallError("read", err)
	}
	rides.Put(r)
	return true
}
