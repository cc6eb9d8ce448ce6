package plugins

import (
	"runtime"
	"time"
)

// seated is how one call of a guest stands with the seats.
type seated struct {
	worked time.Duration // computed in this call, by what it visited: never much more than it did
	since  time.Duration // what worked was when it got its seat
	rested time.Duration // what worked was when it rested last
	waited time.Duration // for a seat, in this call, and while it rested
	on     bool          // it has one
}

// mostWorked is the most that a slice of fuel takes as a rule. What is longer is a machine that did something else: to take that
// for work would have guests wait for a seat that compute little.
const mostWorked = 100 * time.Microsecond

// place sees to it that a guest which has computed for long has a seat. It returns false when the request has no more time to
// wait for one.
func (l *leash) place() bool {
	if l.on {
		if l.seats.only && l.worked-l.rested >= restFrom {
			l.pause()
		}
		if l.worked-l.since < seatTurn || !l.seats.asked() {
			return true
		}
		l.seats.stand()
	}
	began := time.Since(l.began)
	l.on = l.seats.wait(left(l.rest, began), l.of)
	l.last, l.since = time.Since(l.began), l.worked // waiting is no time of its own
	l.waited += l.last - began
	return l.on
}

// pause lets those run that wait for the only processor.
func (l *leash) pause() {
	began := l.last
	time.Sleep(restTime)
	runtime.Gosched()                                // who has slept comes before all that are ready
	l.last, l.rested = time.Since(l.began), l.worked // resting is no time of its own
	l.waited += l.last - began
}

// left is how much of rest there is, at least the shortest time; 0 when there is no end.
func left(rest, now time.Duration) time.Duration {
	if rest == 0 {
		return 0
	}
	return max(rest-now, 1)
}

// leave gives the seat up at the end of a call.
func (l *leash) leave() {
	if l.on {
		l.on = false
		l.seats.stand()
	}
}
