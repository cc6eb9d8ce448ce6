package partitioner

import (
	"fmt"
	"slices"
	"time"
)

// Figures of the guards.
const (
	backlogLimit = time.Second      // a lane that needs longer to confirm what it has is not left
	massLoss     = 3                // more than one in so many partitions lost ...
	massLossIn   = 30 * time.Second // ... within this is a network that is cut, not partitions that failed
	strikes      = 3                // rounds of moves without progress
	progress     = 0.01             // of the mean
	freeze       = 5 * time.Minute
)

// guards remember what speaks against changes.
type guards struct {
	lost   map[int32]time.Duration // since when a partition cannot be reached
	join   map[int32]joined
	slow   map[int32]slowness
	told   map[string]time.Duration
	frozen time.Duration // no moves until
}

// joined is a partition that was lost and came back.
type joined struct{ until, hold, at time.Duration }

func newGuards() guards {
	return guards{lost: map[int32]time.Duration{}, join: map[int32]joined{}, slow: map[int32]slowness{}, told: map[string]time.Duration{}}
}

// watch follows which partitions can be reached. One that comes back gets nothing for a while; the more often it
// comes back, the longer.
func (n *planning) watch() {
	g := &n.guards
	for p := range g.lost {
		if slices.Contains(n.load.Lost, p) {
			continue
		}
		delete(g.lost, p)
		h := hold
		if last, ok := g.join[p]; ok && n.now-last.at < holdsNear*last.hold {
			h = min(2*last.hold, longestHold)
		}
		g.join[p] = joined{n.now + h, h, n.now}
	}
	for _, p := range n.load.Lost {
		if _, ok := g.lost[p]; !ok {
			g.lost[p] = n.now
		}
	}
}

// closed reports whether a partition gets nothing now.
func (g *guards) closed(p int32, now time.Duration) bool {
	_, lost := g.lost[p]
	return lost || now < g.join[p].until
}

// cut reports whether so many partitions went away at once that it must be the network.
func (n *planning) cut() bool {
	recent := 0
	for _, since := range n.guards.lost {
		if n.now-since < massLossIn || massLoss*len(n.guards.lost) > len(n.table.active) {
			recent++
		}
	}
	return massLoss*recent > len(n.table.active)
}

// once notes what holds for long no more than every minute.
func (n *planning) once(what string, format string, args ...any) {
	if last, ok := n.guards.told[what]; ok && n.now-last < time.Minute {
		return
	}
	n.guards.told[what] = n.now
	n.note(format, args...)
}

// backlog reports whether a partition cannot be left by ordered events now.
func (n *planning) backlog(p int32, k Heavy) bool {
	if _, lost := n.guards.lost[p]; !n.ordered() || !lost && (int(p) >= len(n.load.Backlog) || n.load.Backlog[p] <= backlogLimit) {
		return false
	}
	stays := "what it has stays"
	if k.Hi != 0 || k.Lo != 0 { // else it is asked for slots
		stays = fmt.Sprintf("key %016x%016x stays", k.Hi, k.Lo)
	}
	n.once("lane_backlog", "lane_backlog: what is sealed for partition %d is not confirmed within %v, %s", p, backlogLimit, stays)
	return true
}
