package forward

// Inherited returns how many events that an earlier process left in the spool are still to be delivered.
func (f *Forwarder) Inherited() (events int) {
	for _, l := range f.lanes {
		events += l.inherited()
	}
	return events
}

func (l *lane) inherited() (events int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, fr := range l.queue[:l.sealed] {
		if fr.first <= l.highest {
			events += fr.left()
		}
	}
	if l.spilled.some() && l.spilled.first <= l.highest {
		events += max(1, l.spilled.events)
	}
	return events
}
