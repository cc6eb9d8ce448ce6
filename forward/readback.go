package forward

import (
	"context"
	"fmt"

	"github.com/headgate-io/headgate/forward/spool"
	"github.com/headgate-io/headgate/internal/compress"
	"github.com/headgate-io/headgate/sdk/wire"
)

// inherit takes over what the spool has of the lane at the start.
func (l *lane) inherit(b spool.Backlog) {
	l.highest, l.boundary, l.confirmed = b.Highest, b.Sent, b.Confirmed
	l.numbers.bound = b.Bound
	l.counts.accepted += b.Lost
	l.counts.lost += b.Lost
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
	if l.confirmed >= fr.first {
		fr.delivered = int(l.confirmed - fr.first + 1)
	}
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
	l.counts.sealed += fr.left()
	l.counts.spooled -= fr.left()
	l.counts.bytes += fr.held
	s.gap++
	s.events -= fr.left()
	s.first = fr.last() + 1
	if !s.some() {
		l.endSpilled()
		return false
	}
	return more
}
