//go:build !wasip1

package plugin

// Outside of a gateway, in a plugin's own tests, log lines go to standard error and counters nowhere.

func hostLog(_ uint32, line string) { println(line) }

func hostCounter(uint32, int64) {}
