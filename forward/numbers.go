package forward

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"
)

// numbers is what a lane knows of its numbers besides the next one.
type numbers struct {
	bound uint64        // up to it numbers may be given; 0: nothing is reserved, and the backend must say where they go on; the sealer's
	known atomic.Uint64 // the number behind the last one that the backend has, at the first call of it; 0: it has not answered
	blind atomic.Uint64 // the first one that was given before the backend answered; 0: none was
	met   chan struct{} // closed when the sender knows
}

// introduce asks the backend where the lane ended, before it is sent anything. Where numbers are reserved it is asked once, while
// it is there, and the sender goes on asking: a lane that has its number makes events durable when the backend is not.
func (l *lane) introduce(ctx context.Context) error {
	if l.f.reserved == nil {
		if s := l.spilledNow(); s.some() || l.confirmed > 0 {
			return l.number(ctx)
		}
		return nil
	}
	if l.numbers.bound > 0 {
		soon, cancel := context.WithTimeout(ctx, patient)
		defer cancel()
		_ = l.resume(soon)
		return nil
	}
	if l.limited(l.resume)(ctx) == nil { // so that a later process knows of it, whether an event comes or not
		_ = l.reserve(ctx)
	}
	return nil
}

// ended asks the backend where the lane ended.
func (l *lane) ended(ctx context.Context) (last uint64, err error) {
	err = l.alone(ctx, func() (err error) {
		last, err = l.f.backend.Resume(ctx, l.partition)
		return err
	})
	return last, err
}

// resume asks the backend where the lane ended, and numbers it.
func (l *lane) resume(ctx context.Context) error {
	last, err := l.ended(ctx)
	if err == nil {
		l.numbers.known.Store(last + 1)
		l.next = max(last, l.highest) + 1
	}
	return err
}

// patient is how long the sender's backend may take to say where the lane ended, where that is known well enough without it.
const patient = time.Second

// number finds out, once, where the lane's numbering goes on: from the backend or, when that is away, from the numbers that no
// earlier process can have given.
func (l *lane) number(ctx context.Context) error {
	if l.next != 0 {
		return nil
	}
	if l.f.reserved == nil {
		err := l.retry(ctx, "resume", l.limited(l.resume))
		if err == nil {
			err = l.compareFirst(ctx)
		}
		if err != nil {
			l.next = 0
		}
		return err
	}
	n := &l.numbers
	wait := patient
	if n.bound == 0 {
		wait = math.MaxInt64
	}
	soon := time.NewTimer(wait)
	defer soon.Stop()
	select {
	case <-n.met:
	case <-soon.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	blind := max(n.bound, l.highest) + 1
	n.blind.Store(blind)
	if behind := n.known.Load(); behind > 0 {
		n.blind.Store(0)
		l.next = max(behind, l.highest+1)
		return nil
	}
	l.next = blind
	l.f.log.Warn("the backend does not say where a partition ended: its numbers go on behind those that may have been given", "partition", l.partition, "number", l.next)
	return nil
}

// compareFirst compares what the backend has with what it had confirmed to earlier processes. One that cannot be asked says
// no more than where to go on.
func (l *lane) compareFirst(ctx context.Context) error {
	if l.f.check != nil && l.confirmed > 0 {
		if err := l.compareWith(ctx, l.confirmed); err != nil {
			return err
		}
	}
	l.mu.Lock()
	l.resumed = true
	l.mu.Unlock()
	return nil
}

// meet is for the sender what number is where none are reserved. What was numbered without the backend must come behind what it
// has, or it would take new events for those: only an old copy of the data folder can make it so.
func (l *lane) meet(ctx context.Context) error {
	if l.f.reserved == nil {
		return nil
	}
	n := &l.numbers
	if n.known.Load() == 0 {
		err := l.retry(ctx, "resume", l.limited(func(ctx context.Context) error {
			last, err := l.ended(ctx)
			if err != nil {
				return err
			}
			n.known.Store(last + 1)
			if first := n.blind.Load(); first > 0 && last >= first {
				return &SendError{Reason: "numbers", Err: fmt.Errorf("the backend has events of partition %d up to number %d, and new ones were numbered from %d on while it was away: "+
					"is the data folder an old copy? They stay in the spool and are not sent, since it would take them for those it has", l.partition, last, first)}
			}
			return nil
		}))
		if err != nil {
			return err
		}
	}
	close(n.met)
	return l.compareFirst(ctx)
}

// ahead is for how many more events numbers are reserved before they are needed.
const ahead = 1 << 19

// reserve makes sure that no later process gives the numbers of the next frame. It asks for more when half of what it has is
// used up, so that a disk that takes nothing for a while holds up nobody; a lane of which nothing is known is no less known then.
func (l *lane) reserve(ctx context.Context) error {
	n := &l.numbers
	last := l.next + uint64(l.f.cfg.FrameEvents)
	if l.f.reserved == nil || last+ahead <= n.bound {
		return nil
	}
	ask := func(context.Context) error {
		bound, err := l.f.reserved(l.partition, last+ahead)
		if err != nil {
			return &SendError{Reason: "spool", Err: err}
		}
		n.bound = bound
		return nil
	}
	if last <= n.bound || n.bound == 0 {
		_ = ask(ctx) // asked again for the next frame
		return nil
	}
	return l.retry(ctx, "reserve numbers", ask)
}
