//go:build unix

package gateway

import (
	"math"
	"syscall"
)

// openFiles is how many files this process may have open.
func openFiles() (n int, known bool) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, false
	}
	return int(min(uint64(limit.Cur), math.MaxInt32)), true
}
