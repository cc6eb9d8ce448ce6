//go:build !linux

package plugins

import "time"

// cpuTime is the time on the wall where there is no better clock.
func cpuTime() int64 { return time.Now().UnixNano() }
