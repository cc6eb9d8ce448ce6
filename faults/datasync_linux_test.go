package faults

import (
	"os"
	"syscall"
)

// datasync makes what was written last.
func datasync(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }
