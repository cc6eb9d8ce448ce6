//go:build !unix

package ingest

import (
	"net"
	"syscall"
)

func rawOf(net.Conn) syscall.RawConn { return nil }

func (c *conn) answerReady(uintptr) bool { return true }
