//go:build !unix

package main

import "time"

// cpuTime is the clock on the wall, where there is no other.
func cpuTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
