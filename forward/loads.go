package forward

import "time"

// LaneLoad is what the planner needs to know of a lane.
type LaneLoad struct {
	Accepted  uint64        // events that it has taken, since the start
	Delivered uint64        // of those that it is done with
	Waiting   int           // events sealed and not confirmed, in flight ones not counted
	Inflight  int           // events in flight
	Ack       time.Duration // how long a run takes to be confirmed, smoothed; 0: not known
	Trouble   time.Duration // since when the backend has taken nothing; 0: it does
}

// LaneLoads appends what there is to know of each lane to dst.
func (f *Forwarder) LaneLoads(dst []LaneLoad) []LaneLoad {
	for _, l := range f.lanes {
		l.mu.Lock()
		c := l.counts
		one := LaneLoad{Accepted: c.accepted, Delivered: c.delivered + c.refused + c.abandoned + c.lost, Waiting: c.sealed + c.spooled, Inflight: c.inflight, Ack: l.ack}
		l.mu.Unlock()
		if t := l.trouble.Load(); t != nil {
			one.Trouble = max(1, time.Since(t.since))
		}
		dst = append(dst, one)
	}
	return dst
}

// ackWeight is what a new measurement counts in the smoothed time of a run.
const ackWeight = 0.2

// confirmedRun notes a run that the backend is done with now; last is its last frame, and refused are those of its events
// that are not stored, when it is alone. l.mu is held.
func (l *lane) confirmedRun(last *frame, refused []refusal) {
	at := last.events - 1
	for n := len(refused) - 1; n >= 0 && refused[n].at == at; n-- {
		at--
	}
	if at >= 0 {
		l.stored = last.first + uint64(at)
	}
	took := time.Since(l.sentAt)
	if l.ack == 0 {
		l.ack = took
	}
	l.ack += time.Duration(ackWeight * float64(took-l.ack))
}
