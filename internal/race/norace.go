//go:build !race

// Package race tells tests whether the race detector is in them: pools then forget at random, so that allocations say
// nothing, and a process needs much more memory.
package race

// Enabled reports that the race detector is on.
const Enabled = false
