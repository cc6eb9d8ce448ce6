package plugins

import (
	"errors"
	"fmt"
	"os"
	"strconv"

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
	return yieldToOthers()
}

// yieldToOthers lowers the priority of all threads of this process, since the collector's work is done by others than the one that
// compiles; threads made later have that of who makes them. Where the gateway has a lower one it is kept: raising it needs a privilege.
func yieldToOthers() error {
	const nicer = 10
	raw, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return err
	}
	nice := max(20-raw, nicer) // the system call returns 20 less the value
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			return err
		}
		if err := unix.Setpriority(unix.PRIO_PROCESS, id, nice); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}
