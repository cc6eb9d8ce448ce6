package gateway

import (
	"time"

	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/partitioner"
)

// laneLoads turns what lanes say into what the planner wants to know.
type laneLoads struct {
	now, before []forward.LaneLoad
	rates       []laneRate
}

// Figures of lanes.
const (
	rateMemory = time.Second     // of the smoothed rate
	lostAfter  = 3 * time.Second // a lane that its backend takes nothing of for so long is lost
	never      = 24 * time.Hour  // a backlog that nobody can tell the end of
)

// laneRate is how many events a second a lane is done with. A backend confirms runs, and one of them may take it much longer
// than a tick, or than the memory: then nothing is known between two confirmations but that it takes longer still.
type laneRate struct {
	rate  float64       // events a second, smoothed
	since time.Duration // since the last confirmation, as long as there is something to confirm
	known bool          // rate is of what the backend has had to do lately
}

// tick takes over what a lane says at the end of a tick, in which so many events were confirmed.
func (r *laneRate) tick(is *forward.LaneLoad, confirmed uint64, elapsed time.Duration) {
	switch {
	case confirmed > 0:
		r.since += elapsed
		share, rate := min(1, r.since.Seconds()/rateMemory.Seconds()), float64(confirmed)/r.since.Seconds()
		if !r.known {
			share = 1
		}
		r.rate, r.known, r.since = r.rate+share*(rate-r.rate), true, 0
		return
	case is.Waiting+is.Inflight == 0:
		r.rate -= min(1, elapsed.Seconds()/rateMemory.Seconds()) * r.rate
		r.known, r.since = r.known && r.rate >= 1, 0
		return
	}
	if is.Inflight > 0 && r.since > 0 { // since the tick before at least, and not confirmed
		if most := float64(is.Inflight) / r.since.Seconds(); !r.known || most < r.rate {
			r.rate, r.known = most, true
		}
	}
	r.since += elapsed
}

// read fills in Backlog, Ack and Lost of a load, for the first n lanes: those of partitions that there are.
func (l *laneLoads) read(f *forward.Forwarder, elapsed time.Duration, load *partitioner.Load, n int) {
	l.before, l.now = l.now, f.LaneLoads(l.before[:0])
	if len(l.rates) != len(l.now) {
		l.rates = make([]laneRate, len(l.now))
	}
	for p := range l.now {
		is := &l.now[p]
		if len(l.before) == len(l.now) {
			l.rates[p].tick(is, is.Delivered-l.before[p].Delivered, elapsed)
		}
		if p >= n {
			continue
		}
		load.Ack = append(load.Ack, is.Ack)
		load.Backlog = append(load.Backlog, backlog(is, l.rates[p].rate))
		if is.Trouble >= lostAfter {
			load.Lost = append(load.Lost, int32(p))
		}
	}
	if len(load.Lost) == n { // it is not the partitions
		load.Lost = nil
	}
}

// backlog is how long a lane needs to confirm what is sealed, when it is done with so many events a second.
func backlog(l *forward.LaneLoad, rate float64) time.Duration {
	switch {
	case l.Trouble > 0:
		return never
	case l.Waiting+l.Inflight == 0 && rate < 1: // Ack is of a time that is over, and without events none follows
		return 0
	case l.Waiting == 0:
		return l.Ack
	case rate < 1:
		return never
	}
	return min(never, time.Duration(float64(l.Waiting+l.Inflight)/rate*float64(time.Second)))
}
