package alarm

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// clock is a timer of the kernel, which wakes the poller of the runtime like a socket does.
type clock struct {
	file *os.File
	raw  syscall.RawConn
	next unix.ItimerSpec
	arm  func(fd uintptr) // made once, so that Set allocates nothing
}

// open reports false when the process may have no such timer, as it may have no more open files.
func (a *Alarm) open(call func()) bool {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return false
	}
	c := &a.clock
	c.file = os.NewFile(uintptr(fd), "timerfd")
	if c.raw, err = c.file.SyscallConn(); err != nil {
		c.file.Close()
		return false
	}
	c.arm = func(fd uintptr) { _ = unix.TimerfdSettime(int(fd), 0, &c.next, nil) } // it fails for impossible times alone
	a.running.Go(func() {
		var expirations [8]byte
		for {
			if _, err := c.file.Read(expirations[:]); err != nil { // closed
				return
			}
			call()
		}
	})
	return true
}

func (a *Alarm) set(d time.Duration) {
	a.clock.next.Value = unix.NsecToTimespec(int64(d))
	_ = a.clock.raw.Control(a.clock.arm) // an error: it is closed
}

func (a *Alarm) close() { a.clock.file.Close() }
