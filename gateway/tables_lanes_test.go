package gateway

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/partitioner"
)

// A backend confirms so many events a second, in runs of all that waits up to a most. What is measured of it is never less than
// that by more than the grain of the ticks, however long a run takes; and soon it is not more.
func TestARateIsTrueHoweverLongARunTakes(t *testing.T) {
	for _, c := range []struct{ offered, takes, most int }{
		{800, 25, 1 << 20}, // the second run takes half a minute
		{800, 25, 50}, {800, 25, 5}, {2000, 500, 1 << 20}, {2000, 500, 100}, {30, 25, 1 << 20},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			var r laneRate
			var is forward.LaneLoad
			var left float64 // of the run in flight
			last := 0.0
			for tick := range 1200 { // 120 s
				is.Waiting += c.offered / 10
				confirmed := uint64(0)
				for left -= float64(c.takes) / 10; left <= 0; left += float64(is.Inflight) {
					confirmed += uint64(is.Inflight)
					is.Inflight = min(is.Waiting, c.most)
					is.Waiting -= is.Inflight
					if is.Inflight == 0 {
						left = 0
						break
					}
				}
				r.tick(&is, confirmed, tickTime)
				if last = r.rate; tick > 20 && last < 0.8*float64(c.takes) {
					t.Fatalf("after %d ticks %.1f", tick, last)
				}
			}
			if last > 1.5*float64(c.takes) {
				t.Errorf("in the end %.1f", last)
			}
		})
	}
}

// What is confirmed now and then is no less than what comes, and nothing is left when nothing does.
func TestARateFadesWithTheEvents(t *testing.T) {
	var r laneRate
	for range 100 {
		r.tick(&forward.LaneLoad{}, 10, tickTime)
	}
	if r.rate < 99 || r.rate > 101 {
		t.Errorf("%.1f", r.rate)
	}
	for range 100 {
		r.tick(&forward.LaneLoad{}, 0, tickTime)
	}
	if r.rate >= 1 || r.known {
		t.Errorf("%+v", r)
	}
	if r.tick(&forward.LaneLoad{Inflight: 5000}, 0, tickTime); r.known {
		t.Error("what was just sent says nothing")
	}
	if r.tick(&forward.LaneLoad{}, 5000, tickTime); r.rate != 25_000 {
		t.Errorf("%.1f", r.rate)
	}
}

// A partition whose backend takes 50 events a second in runs that take seconds is found saturated by what it takes; not so when it
// gets less than that, nor one with a backlog that becomes smaller.
func TestSaturationIsSeenBetweenRuns(t *testing.T) {
	for _, c := range []struct {
		offered int // each tick
		want    bool
	}{{50, true}, {10, true}, {4, false}} {
		var s saturation
		l := laneLoads{rates: make([]laneRate, 2)}
		lane := forward.LaneLoad{Waiting: 200}
		left := 0
		var found []float64
		for range 600 {
			lane.Accepted += uint64(c.offered)
			lane.Waiting += c.offered
			done := 0
			if left -= 5; left <= 0 {
				done = lane.Inflight
				lane.Inflight = min(lane.Waiting, 400)
				lane.Waiting -= lane.Inflight
				lane.Delivered += uint64(done)
				left = lane.Inflight
			}
			l.before = l.now
			l.now = []forward.LaneLoad{lane, {}}
			r := partitioner.Reading{Partitions: []float64{1000 * float64(c.offered), 0}, Load: partitioner.Load{}}
			l.rates[0].tick(&lane, uint64(done), tickTime)
			r.Load.Backlog = []time.Duration{backlog(&lane, l.rates[0].rate), 0}
			if s.read(&l, &r, tickTime); r.Load.Confirmed != nil {
				found = append(found, r.Load.Confirmed[0])
			}
		}
		if len(found) > 0 != c.want {
			t.Errorf("%d a second: saturated in %d ticks", 10*c.offered, len(found))
			continue
		}
		if c.want { // an event weighs 100
			if least, most := slices.Min(found), found[len(found)-1]; least < 0.8*50*100 || most > 1.5*50*100 {
				t.Errorf("%d a second: at least %.0f is confirmed, in the end %.0f", 10*c.offered, least, most)
			}
		}
	}
}
