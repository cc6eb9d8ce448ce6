package forward

import (
	"errors"

	"github.com/headgate-io/headgate/forward/spool"
)

// Spool keeps sealed frames until the backend has confirmed them, also over a restart; *spool.Spool is one, and says what
// its methods mean. Lanes call it concurrently, each for its own partition.
type Spool interface {
	Append(e *spool.Entry)
	Advance(partition int32, confirmed, sending uint64)
	Next(partition int32, after uint64, f *spool.Frame) (ok bool, err error)
}

// spoolIn hands a sealed frame to the spool; the lane has counted it as spooling.
func (l *lane) spoolIn(fr *frame) {
	fr.entry.Frame = spool.Frame{
		Partition: l.partition, First: fr.first, Events: fr.events, Framing: uint8(fr.framing), Codec: fr.codec.Name(),
		TableVersion: fr.tableVersion, Payload: fr.payload.b,
	}
	// Nobody need wait for a frame to be written at once: when the backend falls behind, memory is to be had again.
	fr.entry.Waited = fr.waited || l.trouble.Load() != nil || l.f.pressed()
	if fr.released {
		l.f.round.append(&fr.entry)
		return
	}
	l.f.spool.Append(&fr.entry)
}

// spooled is called by the spool once it needs the frame no more: it is safe, or was confirmed before it was written.
func (fr *frame) spooled() {
	l := fr.lane
	l.mu.Lock()
	first := !fr.durable
	fr.durable = true
	l.unsafe--
	waited := fr.waited
	if waited {
		l.writing--
	}
	l.mu.Unlock()
	if first {
		fr.safe()
	}
	l.mu.Lock()
	fr.spooling = false
	over := fr.over
	var dropped []*frame
	if !over {
		dropped = l.spill(false)
	}
	l.sealNow()
	l.leave()
	l.mu.Unlock()
	if over {
		fr.recycle()
	}
	l.drop(dropped)
	if waited {
		l.f.round.leave()
	}
}

// safe tells the receipts that the frame's events will be delivered whatever happens.
func (fr *frame) safe() {
	for _, p := range fr.parts {
		p.receipt.safe(p.events)
	}
}

// errSafe ends the tries of a lane that is closed: its backend takes nothing, and the spool has everything.
var errSafe = errors.New("the rest is safe in the spool")

// isSafe tells that nothing would be lost if the lane ended now; l.mu is held.
func (l *lane) isSafe() bool {
	return l.f.spool != nil && l.closing && l.open == nil && l.sealed == len(l.queue) && l.unsafe == 0
}

// leave wakes a sender that waits for a backend that takes nothing, once nothing would be lost; l.mu is held.
func (l *lane) leave() {
	if l.isSafe() && !l.left {
		l.left = true
		close(l.quit)
	}
}

// mayLeave is isSafe for who does not hold l.mu.
func (l *lane) mayLeave() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isSafe()
}
