package forward

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/headgate-io/headgate/forward/spool"
	"github.com/headgate-io/headgate/internal/compress"
	"github.com/headgate-io/headgate/sdk/wire"
)

// LostError is how a backend says that it has lost what it had confirmed: of the lane it has the events up to Stored, and
// goes on behind them.
type LostError struct{ Stored, Confirmed uint64 }

// Error names the numbers.
func (e *LostError) Error() string {
	return fmt.Sprintf("the backend has lost the events numbered %d to %d, which it had confirmed", e.Stored+1, e.Confirmed)
}

// numberJump is a gap that no events were lost in: numbers go on so far above where a lane may have lost its end.
const numberJump = 1 << 31

// restored is what became of events that a backend has lost.
type restored struct {
	sent, lost uint64
	known      uint64 // up to here it was counted before
}

// repair sends the events behind one number and up to another again that the backend has lost, as far as the spool still has
// them, and counts the others.
func (l *lane) repair(ctx context.Context, after, last uint64) error {
	if after >= last {
		return nil
	}
	l.f.log.Error("THE BACKEND HAS LOST EVENTS that it had confirmed: what the spool still has of them is sent again", "partition", l.partition,
		"from", after+1, "to", last, "events_at_most", last-after)
	all := restored{known: l.missed}
	for after < last {
		run, err := l.lostRun(ctx, after, last)
		if err != nil {
			return err
		}
		if len(run) == 0 {
			l.miss(&all, after, last)
			break
		}
		l.miss(&all, after, run[0].first-1)
		if err := l.sendAgain(ctx, run, &all); err != nil {
			return err
		}
		after = run[len(run)-1].last()
	}
	l.mu.Lock()
	l.counts.backendLost += all.lost
	l.counts.sentAgain += all.sent
	l.mu.Unlock()
	l.missed = all.known
	l.f.log.Warn("what the backend had lost is sent again", "partition", l.partition, "events", all.sent, "lost_at_most", all.lost)
	return nil
}

// miss counts the events behind one number and up to another as lost.
func (r *restored) miss(after, last uint64) {
	after = max(after, r.known)
	if last > after && last-after < numberJump {
		r.lost += last - after
	}
	r.known = max(r.known, last)
}

// miss is that of all, and says so when the first of them is.
func (l *lane) miss(all *restored, after, last uint64) {
	before := all.lost
	if all.miss(after, last); before == 0 && all.lost > 0 && l.f.onLost != nil {
		l.f.onLost()
	}
}

// lostRun reads the next frames again that are to be one run; none when there are no more.
func (l *lane) lostRun(ctx context.Context, after, last uint64) (run []*frame, err error) {
	if l.f.again == nil {
		return nil, nil
	}
	for size := 0; size < l.f.cfg.MaxRun; {
		var f spool.Frame
		var fr *frame
		err := l.retry(ctx, "read spool", func(context.Context) error {
			ok, err := l.f.again(l.partition, after, &f)
			if err == nil && ok && f.First > after && f.Last() <= last { // one that is half there would overlap
				fr, err = l.frameOf(&f)
			}
			if err != nil {
				return &SendError{Reason: "spool", Err: err}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if fr == nil {
			if f.First > 0 && f.First <= after && f.Last() < last && len(run) == 0 {
				after = f.Last() // half there: what follows it may be whole
				continue
			}
			return run, nil
		}
		if len(run) > 0 && !fr.joins(run[len(run)-1]) {
			return run, nil
		}
		run = append(run, fr)
		size += len(fr.payload.b)
		after = fr.last()
	}
	return run[:cutRun(run, l.f.cfg.MaxRun)], nil
}

// frameOf is a frame of the spool as one of the lane.
func (l *lane) frameOf(f *spool.Frame) (*frame, error) {
	codec, err := compress.ByName(f.Codec)
	if err != nil {
		return nil, fmt.Errorf("a frame of the spool: %w", err)
	}
	return &frame{
		lane: l, codec: codec, framing: wire.Framing(f.Framing), tableVersion: f.TableVersion, first: f.First, events: f.Events,
		payload: &buffer{b: f.Payload},
	}, nil
}

// sendAgain sends a run until the backend has it. What it refuses it has refused before: it is in the dead letter.
func (l *lane) sendAgain(ctx context.Context, frames []*frame, all *restored) error {
	if n := cutRun(frames, math.MaxInt); n < len(frames) {
		return errors.Join(l.sendAgain(ctx, frames[:n], all), l.sendAgain(ctx, frames[n:], all))
	}
	run, joint := l.assemble(frames)
	isRefused := false
	err := l.retry(ctx, "send again", l.limited(func(ctx context.Context) error {
		err := l.f.backend.Send(ctx, run)
		if isRefused = refused(err) != nil; isRefused {
			return nil
		}
		return err
	}))
	if joint != nil {
		give(joint)
	}
	switch {
	case err != nil:
		return err
	case !isRefused:
		all.sent += uint64(run.Events)
	case len(frames) > 1:
		half := len(frames) / 2
		return errors.Join(l.sendAgain(ctx, frames[:half], all), l.sendAgain(ctx, frames[half:], all))
	}
	return nil
}

// lostBy returns what a failed call says that the backend has lost, nil for nothing.
func lostBy(err error) *LostError {
	lost, _ := errors.AsType[*LostError](err)
	return lost
}

// Recheck has every lane compare its end with the backend's, once it has nothing in flight: the backend was away, and may have
// come back with less.
func (f *Forwarder) Recheck() {
	if f.check == nil {
		return
	}
	for _, l := range f.lanes {
		l.mu.Lock()
		l.doubtful = true
		l.mu.Unlock()
		wake(l.sender)
	}
}

// compare asks the backend for the lane's end. It reports false when ctx ended first.
func (l *lane) compare(ctx context.Context) bool {
	l.mu.Lock()
	l.doubtful = false
	l.mu.Unlock()
	return l.compareWith(ctx, 0) == nil
}

// compareWith asks the backend for the lane's end, which is to be at confirmed or behind, and at what it has confirmed itself.
func (l *lane) compareWith(ctx context.Context, confirmed uint64) error {
	var lost *LostError
	err := l.retry(ctx, "compare", l.limited(func(ctx context.Context) error {
		err := l.f.check(ctx, l.partition, confirmed)
		if lost = lostBy(err); lost != nil {
			return nil
		}
		return err
	}))
	if err == nil && lost != nil {
		err = l.repair(ctx, lost.Stored, lost.Confirmed)
	}
	return err
}

// Lost returns how many events the backend has lost that it had confirmed: for good, at most, and those sent again.
func (f *Forwarder) Lost() (lost, sentAgain uint64) {
	for _, l := range f.lanes {
		c := l.snapshot()
		lost, sentAgain = lost+c.backendLost, sentAgain+c.sentAgain
	}
	return lost, sentAgain
}
