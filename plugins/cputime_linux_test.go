package plugins

import "golang.org/x/sys/unix"

// cpuTime is the nanoseconds of CPU this process has used: on a busy machine the clock on the wall says little.
func cpuTime() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return t.Nano()
}
