// Package alarm calls back on time, also within a millisecond: a timer of the runtime is rounded up to a whole one while the process
// has nothing else to do.
package alarm

import (
	"sync"
	"time"
)

// Alarm calls a function once, so long after it was set last. It is set by one goroutine at a time.
type Alarm struct {
	clock clock
	timer *time.Timer // where the system has no clock for us

	running sync.WaitGroup // what calls
}

// New returns an alarm that is not set. The function is called by a goroutine of the alarm's own.
func New(call func()) *Alarm {
	a := &Alarm{}
	if !a.open(call) {
		a.timer = time.AfterFunc(time.Hour, call)
		a.timer.Stop()
	}
	return a
}

// Set has the function called after d, and not when it was set to be called before.
func (a *Alarm) Set(d time.Duration) {
	if a.timer != nil {
		a.timer.Reset(d)
		return
	}
	a.set(max(d, 1))
}

// Close returns when no call is under way that began in time. From then on Set does nothing, or has a last one made where a timer does it.
func (a *Alarm) Close() {
	if a.timer != nil {
		a.timer.Stop()
		return
	}
	a.close()
	a.running.Wait()
}
