package ingest

import (
	"slices"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/sdk/session"
)

// A session at the level accepted is answered when its events are in memory. How far they have become durable by themselves is a
// watermark of its own: a client may keep what is behind it.

// stretch is frames of a session next to each other, of which some are not durable yet.
type stretch struct {
	first uint64    // sequence of the first event
	last  uint64    // and of the last
	waits int       // frames that are not durable
	lost  []*flight // those whose outcome is lost: who sends them again waits for those in their place
}

// from takes out what comes again, from a sequence on.
func (c *stretch) from(seq uint64) {
	c.lost = slices.DeleteFunc(c.lost, func(f *flight) bool {
		if f.last() < seq {
			return false
		}
		if f.of = nil; !f.stored {
			c.waits--
		}
		return true
	})
	c.last = seq - 1
}

// mostStretches of a session are told apart; what is more is known to be durable together.
const mostStretches = 1024

// follow watches a frame that was taken. It may be durable already.
func (s *sessions) follow(st *sessionState, f *flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := len(st.coming); n > 0 && st.coming[n-1].last >= f.head.First; n-- {
		if c := st.coming[n-1]; c.first < f.head.First { // some of it did not come again
			c.from(f.head.First)
			break
		}
		st.coming = st.coming[:n-1] // its outcome was lost, and it came again
	}
	if n := len(st.coming); n < mostStretches {
		st.coming = append(st.coming, &stretch{first: f.head.First})
	}
	f.of = st.coming[len(st.coming)-1]
	if f.of.last = f.last(); !f.stored {
		f.of.waits++
	}
	if f.missed {
		f.of.lost = append(f.of.lost, f)
	}
	s.advance(st)
}

// miss notes that a frame's outcome is lost. It may not be followed yet.
func (s *sessions) miss(f *flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.missed = true; f.of != nil {
		f.of.lost = append(f.of.lost, f)
	}
}

// safe is Batch.Safe of a frame.
func (s *sessions) safe(st *sessionState, f *flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.stored = true; f.of != nil {
		f.of.waits--
		s.advance(st)
	}
}

// advance moves the watermark, and has the session say it; s.mu is held.
func (s *sessions) advance(st *sessionState) {
	before := st.durable
	for len(st.coming) > 0 && st.coming[0].waits == 0 {
		st.durable, st.coming = max(st.durable, st.coming[0].last), st.coming[1:]
	}
	if st.durable == before {
		return
	}
	if s.log != nil && !st.forgotten {
		s.log.Append(st.record(outcome{last: st.durable}))
	}
	if a := st.attached; a != nil {
		select {
		case a.durable <- struct{}{}:
		default:
		}
	}
}

// appendDurable appends the watermark to frames, if it has moved, as far as the outcomes are said.
func (a *attachment) appendDurable(frames []byte) []byte {
	if a.level != event.Accepted {
		return frames
	}
	a.of.mu.Lock()
	upTo, forgotten := min(a.state.durable, a.state.settled), a.state.forgotten
	a.of.mu.Unlock()
	if upTo <= a.said || forgotten {
		return frames
	}
	a.said = upTo
	return (&session.Ack{Level: session.Durable, UpTo: upTo}).Append(frames)
}

// sayDurable says the watermark, if it has moved.
func (a *attachment) sayDurable() {
	if frames := a.appendDurable(nil); len(frames) > 0 {
		a.of.flush()
		a.send(frames)
	}
}
