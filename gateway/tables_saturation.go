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
		switch more := is.Waiting + is.Inflight - was.Waiting - was.Inflight; {
		case !long:
			s.growing[p] = 0
		case more > 0 || s.taken[p] > l.rates[p]:
			s.growing[p] += elapsed
		default:
			s.growing[p] = max(0, s.growing[p]-elapsed)
		}
		if s.growing[p] >= growsFor && s.taken[p] >= 1 {
			confirmed[p] = max(1, l.rates[p]*s.weight[p]/s.taken[p])
			saturated++
		}
	}
	if saturated > 0 && (2*saturated <= n || n == 1) && !slices.ContainsFunc(l.now[:n], inTrouble) {
		r.Load.Confirmed = confirmed
	}
}

func inTrouble(l forward.LaneLoad) bool { return l.Trouble > 0 }
