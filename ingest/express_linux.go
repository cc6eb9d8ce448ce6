package ingest

import (
	"encoding/binary"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/headgate-io/headgate/internal/race"
)

// announceRest has the socket say with what it gives how many bytes more it has, and at least one when the client has sent its
// end, which a short read alone does not tell (TCP_INQ of tcp(7), since Linux 4.18).
func announceRest(fd uintptr) { syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, unix.TCP_INQ, 1) }

// receive reads from a socket. all says that nothing more was there, nor the end.
func receive(fd int, p []byte) (n int, all bool, err error) {
	var said [24]byte // syscall.CmsgSpace(4)
	n, m, _, _, err := syscall.Recvmsg(fd, p, said[:], 0)
	if race.Enabled { // the detector takes what was done before a write for done before a Read, but not for before a Recvmsg
		syscall.Read(fd, nil)
	}
	if err != nil || m < syscall.CmsgLen(4) {
		return n, false, err
	}
	return n, binary.NativeEndian.Uint32(said[syscall.CmsgLen(0):]) == 0, nil
}
