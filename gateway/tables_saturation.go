package gateway

import (
	"slices"
	"time"

	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/partitioner"
)

// saturation finds the partitions of which the backend confirms all that it can: their backlog is long and grows, and that of
// the others does not. It turns events into weights by what was assigned.
type saturation struct {
	taken, weight []float64 // events and weight a second that each lane gets, smoothed
	growing       []time.Duration
}

// growsFor is how long a backlog has to grow.
const growsFor = time.Second

// read fills in Confirmed.
func (s *saturation) read(l *laneLoads, r *partitioner.Reading, elapsed time.Duration) {
	n := len(r.Load.Backlog)
	if len(s.taken) != n || len(l.before) != len(l.now) || r.Idle {
		*s = saturation{make([]float64, n), make([]float64, n), make([]time.Duration, n)}
		return
	}
	share, saturated := min(1, elapsed.Seconds()/rateMemory.Seconds()), 0
	confirmed := make([]float64, n)
	for p := range n {
		is, was := &l.now[p], &l.before[p]
		s.taken[p] += share * (float64(is.Accepted-was.Accepted)/elapsed.Seconds() - s.taken[p])
		s.weight[p] += share * (r.Partitions[p] - s.weight[p])
		long := is.Trouble == 0 && r.Load.Backlog[p] > time.Second
		switch rate := l.rates[p].rate; { // not what waits: that is less only when a run is confirmed, which may be a large one
		case !long:
			s.growing[p] = 0
		case s.taken[p] > rate:
			s.growing[p] = min(s.growing[p]+elapsed, 2*growsFor)
		default:
			s.growing[p] = max(0, s.growing[p]-elapsed)
		}
		if s.growing[p] >= growsFor && s.taken[p] >= 1 && l.rates[p].known {
			confirmed[p] = max(1, l.rates[p].rate*s.weight[p]/s.taken[p])
			saturated++
		}
	}
	if saturated > 0 && (2*saturated <= n || n == 1) && !slices.ContainsFunc(l.now[:n], inTrouble) {
		r.Load.Confirmed = confirmed
	}
}

func inTrouble(l forward.LaneLoad) bool { return l.Trouble > 0 }
