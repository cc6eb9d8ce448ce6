package ingest

import (
	"strconv"
	"testing"
	"time"
)

// O03: a thousand clients that are refused in one moment are told a range of seconds, about as many each; after a known wait
// none is told less, and they are spread behind it.
func TestO03RetryAfterDiffers(t *testing.T) {
	for wait, bounds := range map[time.Duration][2]int{0: {1, 5}, time.Second: {1, 2}, 20 * time.Second: {20, 26}, 19500 * time.Millisecond: {20, 26}} {
		told := map[int]int{}
		for range 1000 {
			seconds, err := strconv.Atoi(retryAfter(wait))
			if err != nil || seconds < bounds[0] || seconds > bounds[1] {
				t.Fatalf("after %v: %d, %v", wait, seconds, err)
			}
			told[seconds]++
		}
		n := bounds[1] - bounds[0] + 1
		if len(told) != n {
			t.Errorf("after %v: %v", wait, told)
		}
		for seconds, clients := range told {
			if clients < 1000/n/2 {
				t.Errorf("after %v: only %d of 1000 are told %d", wait, clients, seconds)
			}
		}
	}
}
