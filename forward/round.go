package forward

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/forward/spool"
)

// round has the lanes of a stream sealed together, so that one sync of the spool serves them all: what a disk can do is so
// many syncs a second, whatever is in them. The frames that somebody waits for are sealed as soon as none of them is being
// written, so that the sync is what gathers the next ones; the first ones after a silence at once. While many requests come, no
// round begins sooner than half a linger after the one before, which bounds what a fast disk would make of a busy gateway: a
// frame for each event.
type round struct {
	spool  Spool
	linger time.Duration
	make   func(call func()) Alarm

	coming atomic.Int32 // frames of the round that the spool does not have yet
	order  sync.Mutex   // has them handed over in the order in which they are counted

	mu      sync.Mutex      // taken while a lane's is held, never the other way round
	began   time.Time       // the last one
	came    [many]time.Time // when the last requests did, in turn
	turn    int             // the place of the one that came longest ago
	waiting []*lane         // those with an open frame that somebody waits for
	last    []*lane         // those of the last round: all are released before writing is 0 again, and nobody reads it then
	writing int             // frames that somebody waits for and that are neither in the spool nor confirmed
	alarm   Alarm           // begins a round that came too early; nil until there was one
	armed   bool            // it is set
	over    bool            // and is not needed any more
}

// many is how many requests within a linger have rounds wait for company. Fewer are served by a sync each, at no cost that
// matters.
const many = 8

func newRound(to Spool, linger time.Duration, alarm func(call func()) Alarm) *round {
	if alarm == nil {
		alarm = newTimer
	}
	return &round{spool: to, linger: linger, make: alarm}
}

// late begins the round that came too early.
func (r *round) late() {
	r.mu.Lock()
	r.armed = false
	lanes := r.due(time.Now())
	r.mu.Unlock()
	release(lanes)
}

// set has late called; r.mu is held.
func (r *round) set(d time.Duration) {
	if r.armed || r.over {
		return
	}
	if r.alarm == nil {
		r.alarm = r.make(r.late)
	}
	r.armed = true
	r.alarm.Set(d)
}

// close ends the alarm: nothing waits for a round any more.
func (r *round) close() {
	r.mu.Lock()
	r.over = true
	alarm := r.alarm
	r.mu.Unlock()
	if alarm != nil {
		alarm.Close() // which may wait for late
	}
}

// join makes a lane part of the next round; the lane's mu is held.
func (r *round) join(l *lane) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = append(r.waiting, l)
}

// request begins a round if it is time, for a request that has come.
func (r *round) request(now time.Time) {
	r.mu.Lock()
	r.came[r.turn] = now
	r.turn = (r.turn + 1) % many
	lanes := r.due(now)
	r.mu.Unlock()
	release(lanes)
}

// due returns the lanes of the round that begins now, nil when none does; r.mu is held, and the caller releases them without it.
func (r *round) due(now time.Time) (lanes []*lane) {
	if r.writing > 0 || len(r.waiting) == 0 {
		return nil
	}
	if early := r.linger/2 - now.Sub(r.began); early > 0 && now.Sub(r.came[r.turn]) < r.linger {
		r.set(early)
		return nil
	}
	lanes = r.waiting
	r.waiting, r.last, r.began = r.last[:0], lanes, now
	r.writing += len(lanes)
	r.coming.Add(int32(len(lanes)))
	return lanes
}

// append hands a frame of the round to the spool.
func (r *round) append(e *spool.Entry) {
	r.order.Lock()
	defer r.order.Unlock()
	e.More = r.coming.Add(-1) > 0
	r.spool.Append(e)
}

// enter counts a frame that was closed outside of a round.
func (r *round) enter() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writing++
}

// leave counts a frame out.
func (r *round) leave() {
	var lanes []*lane
	r.mu.Lock()
	if r.writing--; r.writing == 0 {
		lanes = r.due(time.Now())
	}
	r.mu.Unlock()
	release(lanes)
}

// release begins a round of these lanes.
func release(lanes []*lane) {
	for _, l := range lanes {
		l.release()
	}
}

// release has the lane's open frame sealed. A frame that was closed in the meantime is on its way anyway.
func (l *lane) release() {
	l.mu.Lock()
	l.joined = false
	found := l.open != nil && l.open.waited
	if found {
		l.open.released = true
		wake(l.sealer)
	}
	l.mu.Unlock()
	if !found {
		l.f.round.coming.Add(-1)
		l.f.round.leave()
	}
}
