//go:build !linux

package alarm

import "time"

// clock is nothing: timers of the runtime do it.
type clock struct{}

func (a *Alarm) open(func()) bool { return false }

func (a *Alarm) set(time.Duration) {}

func (a *Alarm) close() {}
