package forward

import (
	"fmt"
	"time"

	"github.com/headgate-io/headgate/event"
)

// A backend that refuses event after event has more likely lost its senses than met so much bad content: from
// here on a lane gives up no more events, and tries the one at hand until the backend takes it.
const (
	mostInARow     = 100 // events refused alone with none confirmed between them
	mostInAWindow  = 100 // refused in refusalWindow, where they are also
	mostPerHundred = 1   // more than this part of what was sent in it
	refusalWindow  = 10 * time.Second
)

// patience is how many events of a lane were refused lately, and so whether one more may be given up.
type patience struct {
	row          int  // since the last confirmation
	stopped      bool // no more is given up until something is confirmed
	begin        time.Time
	taken, given int // since begin: confirmed, given up
}

// confirmed notes that the backend took events.
func (p *patience) confirmed(now time.Time, events int) {
	p.roll(now)
	p.row, p.stopped = 0, false
	p.taken += events
}

// allow returns nil when an event that was refused alone may be given up, and counts it; else an error that has the
// lane send it again.
func (p *patience) allow(now time.Time, why *SendError) error {
	p.roll(now)
	if p.stopped = p.stopped || p.row >= mostInARow || p.given >= mostInAWindow && p.given*100 > (p.given+p.taken)*mostPerHundred; p.stopped {
		return &SendError{Code: event.BackendUnavailable, Reason: "refuses_too_much", After: pauseCap,
			Err: fmt.Errorf("the backend refused %d events in a row, and %d of %d within %v: no more are given up until it takes this one: %w",
				p.row, p.given, p.given+p.taken, refusalWindow, why.Err)}
	}
	p.row++
	p.given++
	return nil
}

func (p *patience) roll(now time.Time) {
	if now.Sub(p.begin) >= refusalWindow {
		p.begin, p.taken, p.given = now, 0, 0
	}
}
