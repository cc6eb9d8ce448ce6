package forward

// laneCounts says where the lane's events are. At any moment accepted is the sum of the other numbers of events.
type laneCounts struct {
	accepted                      uint64
	open, sealed, inflight        int // in memory: not sealed yet, sealed, sent and not confirmed yet
	spooled                       int // in the spool alone
	delivered, refused, abandoned uint64
	lost                          uint64 // damaged in the spool
	bytes                         int64  // of the budget

	backendLost, sentAgain uint64 // events that the backend confirmed and lost: for good, at most, and sent again
}

// snapshot returns the counts of one moment.
func (l *lane) snapshot() laneCounts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts
}

func (c *laneCounts) add(o *laneCounts) {
	c.accepted += o.accepted
	c.open += o.open
	c.sealed += o.sealed
	c.inflight += o.inflight
	c.spooled += o.spooled
	c.lost += o.lost
	c.delivered += o.delivered
	c.refused += o.refused
	c.abandoned += o.abandoned
	c.bytes += o.bytes
	c.backendLost += o.backendLost
	c.sentAgain += o.sentAgain
}
