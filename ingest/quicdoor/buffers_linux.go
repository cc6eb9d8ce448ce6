package quicdoor

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// granted forces what the limits of the kernel do not grant, which a process with CAP_NET_ADMIN can, and reads the sizes.
// The kernel says twice what it grants, for its bookkeeping (socket(7)).
func granted(conn *net.UDPConn) (b Buffers) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return b
	}
	raw.Control(func(fd uintptr) { // an error: the sizes are not known
		b.Read = size(int(fd), unix.SO_RCVBUF, unix.SO_RCVBUFFORCE)
		b.Write = size(int(fd), unix.SO_SNDBUF, unix.SO_SNDBUFFORCE)
	})
	return b
}

func size(fd, option, force int) int {
	n, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, option)
	if err == nil && n/2 < Wanted {
		syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, force, Wanted)
		n, err = syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, option)
	}
	if err != nil {
		return 0
	}
	return n / 2
}
