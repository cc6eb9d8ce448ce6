package gateway

import (
	"slices"
	"sync/atomic"
	"time"
)

// stallBounds are up to how many seconds the counts of stalls go; the last one is for all others.
var stallBounds = [...]float64{0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2, 5}

// stalls counts for how long events were parked.
type stalls struct {
	counts [len(stallBounds) + 1]atomic.Uint64
	nanos  atomic.Int64 // of all of them
}

func (s *stalls) note(events int, took time.Duration) {
	at, _ := slices.BinarySearch(stallBounds[:], took.Seconds())
	s.counts[at].Add(uint64(events))
	s.nanos.Add(int64(events) * int64(took))
}

// read returns what a histogram of Prometheus is made of.
func (s *stalls) read() (count uint64, seconds float64, buckets map[float64]uint64) {
	buckets = make(map[float64]uint64, len(stallBounds))
	for i := range s.counts {
		count += s.counts[i].Load()
		if i < len(stallBounds) {
			buckets[stallBounds[i]] = count
		}
	}
	return count, time.Duration(s.nanos.Load()).Seconds(), buckets
}
