//go:build unix && !linux

package ingest

import "syscall"

func announceRest(uintptr) {}

// receive reads from a socket. all would say that nothing more was there, nor the end.
func receive(fd int, p []byte) (n int, all bool, err error) {
	n, err = syscall.Read(fd, p)
	return n, false, err
}
