package forward

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/headgate-io/headgate/sdk/wire"
)

// sendAll is the lane's sender: it sends run after run until the lane is closed and has no more, or ctx ends.
func (l *lane) sendAll(ctx context.Context) {
	for ctx.Err() == nil {
		batch, done := l.nextRun()
		if done {
			return
		}
		if len(batch) == 0 {
			select {
			case <-l.sender:
			case <-ctx.Done():
			}
			continue
		}
		if !l.deliver(ctx, batch) {
			return
		}
	}
}

// nextRun returns the frames that go out together, in flight from now; or that nothing will come any more.
func (l *lane) nextRun() (run []*frame, done bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	run = l.queue[:cutRun(l.queue[:l.sealed], l.f.cfg.MaxRun)]
	for _, fr := range run {
		l.counts.sealed -= fr.events
		l.counts.inflight += fr.events
	}
	return run, l.closing && l.open == nil && len(l.queue) == 0
}

// cutRun returns how many of the frames one send carries: those of one framing, up to limit bytes, and at least one.
func cutRun(frames []*frame, limit int) int {
	size := 0
	for i, fr := range frames {
		size += len(fr.payload.b)
		if i > 0 && (size > limit || fr.framing != frames[0].framing) {
			return i
		}
	}
	return len(frames)
}

// deliver sends the frames in order, as one run or, when that is refused, in halves, until each of their events is
// confirmed or refused alone; it reports false when ctx ended first.
func (l *lane) deliver(ctx context.Context, batch []*frame) bool {
	run, joint := l.assemble(batch)
	why, err := l.send(ctx, run)
	if joint != nil {
		give(joint)
	}
	switch half := len(batch) / 2; {
	case err != nil:
		return false
	case why == nil:
		l.finish(len(batch), nil)
		return true
	case half == 0:
		return l.deliverPieces(ctx, batch[0], why)
	default:
		return l.deliver(ctx, batch[:half]) && l.deliver(ctx, batch[half:])
	}
}

// send sends a run until the backend confirms or refuses it; why is the refusal. The error is that of ctx, which
// ended first.
func (l *lane) send(ctx context.Context, run *Run) (why *SendError, err error) {
	err = l.retry(ctx, "send", l.limited(func(ctx context.Context) error {
		err := l.f.backend.Send(ctx, run)
		if why = refused(err); why == nil {
			return err
		}
		l.f.metrics.errors.WithLabelValues(l.f.cfg.BackendName, reason(why)).Inc()
		if run.Events == 1 {
			return l.refusals.allow(time.Now(), why)
		}
		return nil // an answer, and the last one
	}))
	if err == nil && why == nil {
		l.refusals.confirmed(time.Now(), run.Events)
	}
	return why, err
}

// assemble describes the frames as a run. Several are concatenated in a buffer, which the caller gives back.
func (l *lane) assemble(batch []*frame) (run *Run, joint *buffer) {
	first, last := batch[0], batch[len(batch)-1]
	run = l.run(first, first.first, last.first+uint64(last.events)-1)
	run.Frames, run.TableVersion, run.Payload = len(batch), last.tableVersion, first.payload.b
	run.ID = wire.RunID(l.frameID(run.First), run.Frames)
	if len(batch) == 1 {
		return run, nil
	}
	size := 0
	for _, fr := range batch {
		size += len(fr.payload.b)
	}
	joint = take(size)
	for _, fr := range batch {
		joint.b = append(joint.b, fr.payload.b...)
	}
	run.Payload = joint.b
	return run, joint
}

// run returns a run of one frame's kind with the events from first to last; it needs an id and a payload.
func (l *lane) run(fr *frame, first, last uint64) *Run {
	return &Run{
		Stream: l.f.cfg.Stream, Partition: l.partition, First: first, Last: last, Events: int(last - first + 1),
		Frames: 1, TableVersion: fr.tableVersion,
		ContentType: fr.framing.ContentType(), ContentEncoding: l.f.codec.ContentEncoding(),
	}
}

// frameID names the lane's frame that begins with the event of that number.
func (l *lane) frameID(first uint64) string {
	return wire.FrameID(l.f.cfg.Gateway, l.f.cfg.Stream, uint32(l.partition), first)
}

// finish takes the first frames off the queue and settles their events: the refused ones, of a frame that is
// alone, with their codes, and all others as confirmed.
func (l *lane) finish(frames int, refused []refusal) {
	done, held := l.popRun(frames, len(refused))
	l.f.budget.Release(held)
	for _, fr := range done {
		fr.settle(refused)
		fr.recycle()
	}
}

// popRun takes n frames, of whose events so many were refused, off the queue.
func (l *lane) popRun(n, refused int) (done []*frame, held int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	done = slices.Clone(l.queue[:n])
	clear(l.queue[:n])
	l.queue, l.sealed = l.queue[n:], l.sealed-n
	events := 0
	for _, fr := range done {
		held += fr.held
		events += fr.events
	}
	l.counts.inflight -= events
	l.counts.delivered += uint64(events - refused)
	l.counts.refused += uint64(refused)
	l.counts.bytes -= held
	if l.sealed == 0 && l.open != nil && !time.Now().Before(l.due) {
		wake(l.sealer)
	}
	return done, held
}

// retry makes a call until it succeeds, or returns the error of ctx when that ends first.
func (l *lane) retry(ctx context.Context, what string, call func(context.Context) error) error {
	for failures := 1; ; failures++ {
		err := call(ctx)
		if err == nil {
			l.recovered(what, failures-1)
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		l.f.metrics.errors.WithLabelValues(l.f.cfg.BackendName, reason(err)).Inc()
		l.failed(what, failures, err)
		if !sleep(ctx, pause(failures, asked(err), rand.Float64())) {
			return ctx.Err()
		}
	}
}

// limited bounds the time of a call: a backend that does not answer is a failure like any other.
func (l *lane) limited(call func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, l.f.cfg.SendTimeout)
		defer cancel()
		return call(ctx)
	}
}
