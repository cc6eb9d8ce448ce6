package forward

import (
	"context"
	"errors"
	"fmt"

	"github.com/headgate-io/headgate/forward/spool"
	"github.com/headgate-io/headgate/internal/compress"
	"github.com/headgate-io/headgate/sdk/wire"
)

// Spool keeps sealed frames until the backend has confirmed them, also over a restart; *spool.Spool is one, and says what
// its methods mean. Lanes call it concurrently, each for its own partition.
type Spool interface {
	Append(e *spool.Entry)
	Advance(partition int32, confirmed, sending uint64)
	Next(partition int32, after uint64, f *spool.Frame) (ok bool, err error)
}

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

// spoolIn hands a sealed frame to the spool; the lane has counted it as spooling.
func (l *lane) spoolIn(fr *frame) {
	fr.entry.Frame = spool.Frame{
		Partition: l.partition, First: fr.first, Events: fr.events, Framing: uint8(fr.framing), Codec: fr.codec.Name(),
		TableVersion: fr.tableVersion, Payload: fr.payload.b,
	}
	// Nobody need wait for a frame to be written at once: when the backend falls behind, memory is to be had again.
	fr.entry.Waited = fr.waited || l.trouble.Load() != nil || l.f.pressed()
	l.f.spool.Append(&fr.entry)
}

// spooled is called by the spool once it needs the frame no more: it is safe, or was confirmed before it was written.
func (fr *frame) spooled() {
	l := fr.lane
	l.mu.Lock()
	first := !fr.durable
	fr.durable = true
	l.unsafe--
	if fr.waited {
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
}

// safe tells the receipts that the frame's events will be delivered whatever happens.
func (fr *frame) safe() {
	for _, p := range fr.parts {
		p.receipt.safe(p.events)
	}
}

// spill takes frames out of memory that the spool has, when memory is short or others before them are out already; or all
// that are not in flight. l.mu is held; the caller drops what is returned.
func (l *lane) spill(all bool) []*frame {
	from := l.spilled.gap
	if !l.spilled.some() {
		if from = l.inflight; !all {
			if !l.f.pressed() {
				return nil
			}
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
		l.spilled.events += fr.events
		l.counts.sealed -= fr.events
		l.counts.spooled += fr.events
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

// recover takes over what the spool has of the lane at the start.
func (l *lane) recover(b spool.Backlog) {
	l.highest, l.boundary = b.Highest, b.Sent
	if b.Frames == 0 {
		return
	}
	l.spilled = spilled{first: b.First, last: b.Last, events: b.Events}
	l.counts.accepted += uint64(b.Events)
	l.counts.spooled += b.Events
}

// refill reads the next run back from the spool: the queue has nothing in front of what was spilled. It reports false when
// ctx ended first.
func (l *lane) refill(ctx context.Context) bool {
	for size := 0; size < l.f.cfg.MaxRun; {
		var fr *frame
		err := l.retry(ctx, "read spool", func(context.Context) (err error) {
			fr, err = l.readBack()
			return err
		})
		if err != nil {
			return false
		}
		if fr == nil {
			return true
		}
		size += len(fr.payload.b)
		if !l.insert(fr) {
			return true
		}
	}
	return true
}

// readBack reads the first spilled frame; nil when there is none any more.
func (l *lane) readBack() (*frame, error) {
	var f spool.Frame
	for {
		s := l.spilledNow()
		if !s.some() {
			return nil, nil
		}
		ok, err := l.f.spool.Next(l.partition, s.first-1, &f)
		if err != nil {
			return nil, &SendError{Reason: "spool", Err: err}
		}
		if ok && f.First <= s.last {
			break
		}
		l.loseRest(s.last)
	}
	codec, err := compress.ByName(f.Codec)
	if err != nil {
		return nil, &SendError{Reason: "spool", Err: fmt.Errorf("a frame of the spool: %w", err)}
	}
	fr := takeFrame()
	fr.lane, fr.codec, fr.framing, fr.tableVersion = l, codec, wire.Framing(f.Framing), f.TableVersion
	fr.first, fr.events, fr.durable, fr.payload = f.First, f.Events, true, &buffer{b: f.Payload}
	return fr, nil
}

func (l *lane) spilledNow() spilled {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.spilled
}

// loseRest ends the spilled frames, if last is still the end of them: what is left was damaged, and is in quarantine.
func (l *lane) loseRest(last uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spilled.last == last {
		l.endSpilled()
	}
}

// endSpilled notes that no spilled frame is left; l.mu is held. Events that did not come were damaged.
func (l *lane) endSpilled() {
	l.counts.spooled -= l.spilled.events
	l.counts.lost += uint64(max(l.spilled.events, 0))
	l.spilled = spilled{}
}

// insert puts a frame that was read back in its place; it reports false when memory has no room for another.
func (l *lane) insert(fr *frame) (more bool) {
	held := int64(cap(fr.payload.b) + frameOverhead)
	if more = l.f.budget.Reserve(held); more { // else it is not counted: one frame a lane at most
		fr.held = held
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.spilled
	l.queue = append(l.queue, nil)
	copy(l.queue[s.gap+1:], l.queue[s.gap:])
	l.queue[s.gap] = fr
	l.sealed++
	l.counts.sealed += fr.events
	l.counts.spooled -= fr.events
	l.counts.bytes += fr.held
	s.gap++
	s.events -= fr.events
	s.first = fr.last() + 1
	if !s.some() {
		l.endSpilled()
		return false
	}
	return more
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
