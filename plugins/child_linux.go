package plugins

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// compilesApart: the compiler's process can be limited.
const compilesApart = true

// limitSelf limits CPU time, memory and files of this process.
func limitSelf(l compileLimits) error {
	// a second between the signal that can be told of, and the end
	if err := unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: l.seconds, Max: l.seconds + 1}); err != nil {
		return err
	}
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return err
	}
	var pages uint64 // of address space: Go reserves more than it uses
	if _, err := fmt.Sscan(string(statm), &pages); err != nil {
		return err
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: mostCompiled, Max: mostCompiled}); err != nil {
		return err
	}
	most := pages*uint64(os.Getpagesize()) + l.bytes
	if err := unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: most, Max: most}); err != nil {
		return err
	}
	const nicer = 10
	return unix.Setpriority(unix.PRIO_PROCESS, 0, nicer)
}
