package datafolder

import (
	"os"

	"golang.org/x/sys/unix"
)

// allocate gives a file so many bytes of the disk from off on, without writing them.
func allocate(f *os.File, off, n int64) error { return unix.Fallocate(int(f.Fd()), 0, off, n) }
