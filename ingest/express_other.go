//go:build !unix

package ingest

import (
	"net"
	"syscall"
)

func rawOf(net.Conn) syscall.RawConn { return nil }

func (c *conn) tryBoard(uintptr) bool { return true }
