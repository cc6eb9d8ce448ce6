package plugins

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// health decides whether a version is to be suspended, from how many events of which callers it trapped on in the last ten
// seconds. It costs an atomic load a call as long as nothing traps.
type health struct {
	suspended atomic.Bool
	watching  atomic.Bool

	mu      sync.Mutex // guards the rest
	began   time.Time  // what came since then is counted
	last    time.Time  // of the traps
	seconds [healthSeconds]healthSecond
}

// healthSecond counts in one second, by caller.
type healthSecond struct {
	second  int64 // unix time
	callers map[uint64]healthCount
}

type healthCount struct{ events, traps int }

func (n healthCount) over(percent int) bool { return 100*n.traps > percent*n.events }

// A version is suspended when more than a twentieth of the events of three callers each make it trap, or more than half of
// all, over ten seconds. The three must be a third of all callers, and the traps a hundredth of all events: else a few addresses
// with little traffic would decide for all. Half of all must hold without the worst caller, too, when there are others.
const (
	healthSeconds   = 10
	suspendCallers  = 3
	suspendPercent  = 5
	suspendPart     = 3 // one caller in so many
	suspendFloor    = 1 // percent of all events
	suspendAll      = 50
	suspendTraps    = 10    // fewer say nothing
	healthCallers   = 1_000 // in a second; all beyond are one
	trapsAreOldFrom = healthSeconds * time.Second
)

// called notes events of a caller on which the version did not trap.
func (h *health) called(caller uint64, events int) {
	if !h.watching.Load() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if now.Sub(h.last) > trapsAreOldFrom {
		h.watching.Store(false)
		return
	}
	h.count(now, caller, healthCount{events: events})
}

// trapped notes a trap, and after how many events of the same call that stand. It returns why the version is suspended now,
// once, and else nothing.
func (h *health) trapped(caller uint64, after int) (reason string) {
	return h.failed(caller, healthCount{events: after + 1, traps: 1})
}

// failed is trapped for any number of events.
func (h *health) failed(caller uint64, n healthCount) (reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if now.Sub(h.last) > trapsAreOldFrom {
		h.began = now
		h.watching.Store(true)
	}
	h.last = now
	h.count(now, caller, n)
	if now.Sub(h.began) < healthSeconds*time.Second || h.suspended.Load() {
		return ""
	}
	if reason = unhealthy(h.sums(now)); reason != "" {
		h.suspended.Store(true)
	}
	return reason
}

// count adds to the second of now. The caller holds mu.
func (h *health) count(now time.Time, caller uint64, n healthCount) {
	second := now.Unix()
	s := &h.seconds[second%healthSeconds]
	if s.second != second || s.callers == nil {
		*s = healthSecond{second, map[uint64]healthCount{}}
	}
	if _, known := s.callers[caller]; !known && len(s.callers) >= healthCallers {
		caller = 0
	}
	was := s.callers[caller]
	s.callers[caller] = healthCount{was.events + n.events, was.traps + n.traps}
}

// sums adds the last ten seconds up. The caller holds mu.
func (h *health) sums(now time.Time) map[uint64]healthCount {
	all := map[uint64]healthCount{}
	for _, s := range h.seconds {
		if s.second <= now.Unix()-healthSeconds {
			continue
		}
		for caller, n := range s.callers {
			was := all[caller]
			all[caller] = healthCount{was.events + n.events, was.traps + n.traps}
		}
	}
	return all
}

// unhealthy says why a version with these counts is suspended, empty when it is not.
func unhealthy(callers map[uint64]healthCount) string {
	var all, worst healthCount
	bad := 0
	for _, n := range callers {
		all.events, all.traps = all.events+n.events, all.traps+n.traps
		if n.traps > worst.traps {
			worst = n
		}
		if n.over(suspendPercent) {
			bad++
		}
	}
	others := all
	if len(callers) > 1 {
		others = healthCount{all.events - worst.events, all.traps - worst.traps}
	}
	some := bad >= suspendCallers && bad*suspendPart >= len(callers) && all.over(suspendFloor)
	if all.traps < suspendTraps || !some && !(all.over(suspendAll) && others.over(suspendAll)) {
		return ""
	}
	return fmt.Sprintf("it trapped on %d of %d events in %d s; on more than %d %% of those of %d of %d callers",
		all.traps, all.events, healthSeconds, suspendPercent, bad, len(callers))
}
