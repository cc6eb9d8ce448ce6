package forward

// spilled is the frames of a lane that are in the spool alone: what was there at the start, and what was dropped from
// memory to make room. All that the spool has between the two numbers is meant, and comes behind the first gap frames of
// the queue.
type spilled struct {
	first, last uint64
	gap         int
	events      int // how many there are, as far as is known
}

// some tells that there are such frames.
func (s *spilled) some() bool { return s.first <= s.last && s.last > 0 }

// spill takes frames out of memory that the spool has, when memory is short, or when others before them are out already and the
// backend takes nothing; or all that are not in flight. l.mu is held; the caller drops what is returned.
func (l *lane) spill(all bool) []*frame {
	from, some := l.spilled.gap, l.spilled.some()
	if !all && !l.f.pressed() && (!some || l.trouble.Load() == nil) {
		return nil
	}
	if !some {
		if from = l.inflight; !all {
			for size := 0; from < l.sealed && size < l.f.cfg.MaxRun; from++ { // the next run stays
				size += len(l.queue[from].payload.b)
			}
		}
	}
	to := from
	for to < l.sealed && l.queue[to].durable && !l.queue[to].spooling {
		to++
	}
	if from == to {
		return nil
	}
	dropped := append([]*frame(nil), l.queue[from:to]...)
	l.queue = append(l.queue[:from], l.queue[to:]...)
	l.sealed -= len(dropped)
	if !l.spilled.some() {
		l.spilled.first, l.spilled.gap = dropped[0].first, from
		wake(l.sender)
	}
	for _, fr := range dropped {
		l.spilled.last = fr.last()
		l.spilled.events += fr.left()
		l.counts.sealed -= fr.left()
		l.counts.spooled += fr.left()
		l.counts.bytes -= fr.held
	}
	return dropped
}

// drop gives up the memory of spilled frames. Who waits for their delivery is told that it takes longer.
func (l *lane) drop(frames []*frame) {
	for _, fr := range frames {
		l.f.budget.Release(fr.held)
		for _, p := range fr.parts {
			p.receipt.detach(p.events)
		}
		fr.recycle()
	}
}

// pressed tells that memory is short.
func (f *Forwarder) pressed() bool { return f.budget.Held() > f.budget.Limit()/2 }

// relieve drops from memory what the spool has.
func (f *Forwarder) relieve() {
	if f.spool == nil {
		return
	}
	for _, l := range f.lanes {
		l.mu.Lock()
		dropped := l.spill(true)
		freed := l.uncharge()
		l.mu.Unlock()
		l.f.budget.Release(freed)
		l.drop(dropped)
	}
}

// uncharge stops counting the run that a backend in trouble does not take: it must stay as it is until it is confirmed,
// one a lane, and new frames, which leave memory as soon as the spool has them, would wait for it. l.mu is held.
func (l *lane) uncharge() (freed int64) {
	if l.trouble.Load() == nil {
		return 0
	}
	for _, fr := range l.queue[:l.inflight] {
		if fr.durable && !fr.spooling {
			freed += fr.held
			fr.held = 0
		}
	}
	l.counts.bytes -= freed
	return freed
}
