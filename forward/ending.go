package forward

import "github.com/headgate-io/headgate/internal/failpoint"

// finish takes the first frames off the queue and settles their events: the refused ones, of a frame that is
// alone, with their codes, and all others as confirmed.
func (l *lane) finish(frames int, refused []refusal) {
	done, held := l.popRun(frames, refused)
	l.f.budget.Release(held)
	last := done[len(done)-1].frame.last()
	for _, p := range done {
		p.frame.settle(refused, p.news)
		if l.f.spool == nil || l.through(p.frame) {
			p.frame.recycle()
		}
	}
	failpoint.Pass(failpoint.Confirmed)
	l.advance(last)
}

// popped is a frame off the queue; news says that its receipts do not know yet that it is safe.
type popped struct {
	frame *frame
	news  bool
}

// popRun takes n frames, of whose events some were refused, off the queue.
func (l *lane) popRun(n int, refused []refusal) (done []popped, held int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	done = make([]popped, n)
	l.confirmedRun(l.queue[n-1], refused)
	events := 0
	for i, fr := range l.queue[:n] {
		done[i] = popped{fr, !fr.durable}
		fr.durable = true
		if len(refused) < fr.left() {
			l.named(fr)
		}
		held += fr.held
		events += fr.left()
	}
	clear(l.queue[:n])
	l.queue, l.sealed, l.inflight = l.queue[n:], l.sealed-n, l.inflight-n
	if l.spilled.some() {
		l.spilled.gap -= n
	}
	l.counts.inflight -= events
	l.counts.delivered += uint64(events - len(refused))
	l.counts.refused += uint64(len(refused))
	l.counts.bytes -= held
	l.sealNow()
	return done, held
}

// through notes that the lane is done with a frame, and reports whether the spool is too.
func (l *lane) through(fr *frame) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	fr.over = true
	return !fr.spooling
}

// abandon gives up on everything in the lane, whose goroutines have ended, and returns the number of its events that are
// not in the spool either.
func (l *lane) abandon() (events int) {
	l.mu.Lock()
	if l.open != nil {
		l.cut()
	}
	all, safe := l.queue, 0
	l.queue, l.sealed = nil, 0
	for _, fr := range all {
		if fr.durable {
			safe += fr.left()
		} else {
			events += fr.events
		}
		l.f.budget.Release(fr.held)
		l.counts.bytes -= fr.held
	}
	l.counts.open, l.counts.sealed, l.counts.inflight = 0, 0, 0
	l.counts.spooled += safe
	l.counts.abandoned += uint64(events)
	l.mu.Unlock()
	for _, fr := range all {
		l.forsake(fr)
	}
	return events
}

// forsake tells the receipts of a frame that nobody can say what has become of it, or that the spool has it.
func (l *lane) forsake(fr *frame) {
	l.mu.Lock()
	durable := fr.durable
	fr.durable = true
	l.mu.Unlock()
	for _, p := range fr.parts {
		if durable {
			p.receipt.detach(p.events)
		} else {
			p.receipt.abandon(p.events)
		}
	}
	if l.through(fr) {
		fr.recycle()
	}
}
