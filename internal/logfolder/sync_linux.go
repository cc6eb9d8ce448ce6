package logfolder

import (
	"os"

	"golang.org/x/sys/unix"
)

// sync makes last what was written and what is needed to read it. It leaves out the time of the last change, for which alone a file
// system would commit its journal.
func (f *file) sync() error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	failed := raw.Control(func(fd uintptr) {
		for err = unix.Fdatasync(int(fd)); err == unix.EINTR; err = unix.Fdatasync(int(fd)) {
		}
	})
	if failed != nil {
		return failed
	}
	return os.NewSyscallError("fdatasync", err)
}
