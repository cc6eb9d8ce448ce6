package forward

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/headgate-io/headgate/internal/failpoint"
	"github.com/headgate-io/headgate/sdk/wire"
)

// sendAll is the lane's sender: it sends run after run until the lane is closed and has no more, or ctx ends.
func (l *lane) sendAll(ctx context.Context) {
	select {
	case <-l.numbered:
	case <-l.quit:
		return
	case <-ctx.Done():
		return
	}
	if l.meet(ctx) != nil {
		return
	}
	rest := time.NewTimer(time.Hour)
	defer rest.Stop()
	for ctx.Err() == nil {
		frames, next := l.nextRun(time.Now())
		switch next {
		case nothing:
			select {
			case <-l.sender:
			case <-ctx.Done():
			}
		case toPace:
			rest.Reset(pace - time.Since(l.sentAt))
			select {
			case <-l.sender:
			case <-rest.C:
			case <-ctx.Done():
			}
		case toSend:
			if l.f.spool != nil {
				l.f.spool.Advance(l.partition, 0, frames[len(frames)-1].last())
			}
			if !l.deliver(ctx, frames) {
				return
			}
		case toCompare:
			if !l.compare(ctx) {
				return
			}
		case toRead:
			if !l.refill(ctx) {
				return
			}
		case toSealLane:
			if !l.writeLaneSeal(ctx) {
				return
			}
		case over:
			return
		}
	}
}

// What a sender does next.
type task int

const (
	nothing task = iota // until it is woken
	toPace              // also wait, not for long
	toSend
	toRead     // back from the spool
	toCompare  // with what the backend has
	toSealLane // all that its seal waits for is confirmed
	over
)

// pace is the least time between small runs of a lane with a spool: who waits for the spool does not wait for them, and a
// backend that syncs each run, or a node that answers it, has fewer of them. The first one after a silence does not wait.
const pace = 20 * time.Millisecond

// tooSoon tells that the frames should wait for more; l.mu is held.
func (l *lane) tooSoon(run []*frame, now time.Time) bool {
	if l.f.spool == nil || l.closing || l.laneSeal != nil || now.Sub(l.sentAt) >= pace {
		return false
	}
	size := 0
	for _, fr := range run {
		if size += len(fr.payload.b); fr.urgent || size >= l.f.cfg.MaxRun/2 {
			return false
		}
	}
	return true
}

// nextRun returns the frames that go out together, in flight from now; or what else there is to do.
func (l *lane) nextRun(now time.Time) (run []*frame, next task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.doubtful && l.resumed && l.inflight == 0 && !l.closing {
		return nil, toCompare
	}
	if l.laneSealReached() {
		return nil, toSealLane
	}
	ready := l.queue[:l.sealed]
	if l.spilled.some() {
		ready = ready[:l.spilled.gap]
	}
	run = ready[:cutRun(ready, l.f.cfg.MaxRun)]
	if i := slices.IndexFunc(run, func(fr *frame) bool { return fr.last() == l.boundary }); i >= 0 {
		run = run[:i+1]
	}
	if len(run) > 0 && l.tooSoon(run, now) {
		return nil, toPace
	}
	if l.inflight = len(run); len(run) > 0 {
		l.sentAt = now
	}
	for _, fr := range run {
		l.counts.sealed -= fr.left()
		l.counts.inflight += fr.left()
	}
	switch {
	case len(run) > 0:
		return run, toSend
	case l.spilled.some():
		return nil, toRead
	case l.closing && l.open == nil && len(l.queue) == 0:
		return nil, over
	}
	return nil, nothing
}

// cutRun returns how many of the frames one send carries: those of one framing and coding whose numbers have no gap, up to
// limit bytes, and at least one. A frame of which a part is delivered goes alone.
func cutRun(frames []*frame, limit int) int {
	size := 0
	for i, fr := range frames {
		size += len(fr.payload.b)
		if i > 0 && (size > limit || !fr.joins(frames[i-1])) {
			return i
		}
	}
	return len(frames)
}

// joins tells whether a frame can be in one run with the frame before it.
func (fr *frame) joins(before *frame) bool {
	return fr.framing == before.framing && fr.codec == before.codec && fr.first == before.last()+1 && fr.delivered+before.delivered == 0
}

// deliver sends the frames in order, as one run or, when that is refused, in halves, until each of their events is
// confirmed or refused alone; it reports false when ctx ended first.
func (l *lane) deliver(ctx context.Context, frames []*frame) bool {
	// Numbers jump after a restart, and where a spool was damaged: a run across such a gap would have events that are not.
	if n := cutRun(frames, math.MaxInt); n < len(frames) {
		return l.deliver(ctx, frames[:n]) && l.deliver(ctx, frames[n:])
	}
	if frames[0].delivered > 0 {
		return l.deliverPieces(ctx, frames[0], nil)
	}
	run, joint := l.assemble(frames)
	why, err := l.send(ctx, run)
	if joint != nil {
		give(joint)
	}
	switch half := len(frames) / 2; {
	case err != nil:
		return false
	case why == nil:
		l.finish(len(frames), nil)
		return true
	case half == 0:
		return l.deliverPieces(ctx, frames[0], why)
	default:
		return l.deliver(ctx, frames[:half]) && l.deliver(ctx, frames[half:])
	}
}

// send sends a run until the backend confirms or refuses it; why is the refusal. The error is that of ctx, which
// ended first.
func (l *lane) send(ctx context.Context, run *Run) (why *SendError, err error) {
	why, lost, err := l.sendOnce(ctx, run)
	for err == nil && lost != nil {
		if err = l.repair(ctx, lost.Stored, run.First-1); err == nil {
			why, lost, err = l.sendOnce(ctx, run)
		}
	}
	if err == nil && why == nil {
		l.patience.confirmed(time.Now(), run.Events)
		l.endHalt()
	}
	return why, err
}

// sendOnce is send, and ends also when the backend has lost what was before the run.
func (l *lane) sendOnce(ctx context.Context, run *Run) (why *SendError, lost *LostError, err error) {
	err = l.retry(ctx, "send", l.limited(func(ctx context.Context) error {
		failpoint.Pass(failpoint.Publish)
		err := l.f.backend.Send(ctx, run)
		failpoint.Pass(failpoint.Published)
		if lost = lostBy(err); lost != nil {
			return nil
		}
		if why = refused(err); why == nil {
			return err
		}
		l.f.metrics.errors.WithLabelValues(l.f.cfg.BackendName, reason(why)).Inc()
		if run.Events == 1 {
			return l.mayGiveUp(time.Now(), why)
		}
		return nil // an answer, and the last one
	}))
	return why, lost, err
}

// assemble describes the frames as a run. Several are concatenated in a buffer, which the caller gives back.
func (l *lane) assemble(frames []*frame) (run *Run, joint *buffer) {
	first, last := frames[0], frames[len(frames)-1]
	run = l.run(first, first.first, last.last())
	run.Frames, run.TableVersion, run.Payload = len(frames), last.tableVersion, first.payload.b
	run.ID = wire.RunID(l.frameID(run.First), run.Frames)
	if len(frames) == 1 {
		return run, nil
	}
	size := 0
	for _, fr := range frames {
		size += len(fr.payload.b)
	}
	joint = take(size)
	for _, fr := range frames {
		joint.b = append(joint.b, fr.payload.b...)
	}
	run.Payload = joint.b
	return run, joint
}

// run returns a run of one frame's kind with the events from first to last; it needs an id and a payload.
func (l *lane) run(fr *frame, first, last uint64) *Run {
	return &Run{
		Stream: l.f.cfg.Stream, Partition: l.partition, First: first, Last: last, Events: int(last - first + 1),
		Frames: 1, TableVersion: fr.tableVersion, Again: first <= l.boundary,
		ContentType: fr.framing.ContentType(), ContentEncoding: fr.codec.ContentEncoding(),
	}
}

// frameID names the lane's frame that begins with the event of that number.
func (l *lane) frameID(first uint64) string {
	return wire.FrameID(l.f.cfg.Gateway, l.f.cfg.Stream, uint32(l.partition), first)
}
