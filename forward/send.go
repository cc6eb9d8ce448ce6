package forward

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"

	"github.com/headgate-io/headgate/event"
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

// deliver sends the frames until they are confirmed or refused for good; it reports false when ctx ended first.
func (l *lane) deliver(ctx context.Context, batch []*frame) bool {
	run, joint := l.assemble(batch)
	var refusal *SendError
	err := l.retry(ctx, "send", func(ctx context.Context) (err error) {
		err = l.f.backend.Send(ctx, run)
		if refusal = refused(err); refusal != nil {
			return nil // an answer, and the last one
		}
		return err
	})
	if joint != nil {
		give(joint)
	}
	switch {
	case err != nil:
		return false
	case refusal != nil:
		l.refuse(run, refusal)
	default:
		l.finish(len(batch), "")
	}
	return true
}

// refuse gives up the run in flight and tells its requests.
func (l *lane) refuse(run *Run, why *SendError) {
	l.f.metrics.errors.WithLabelValues(l.f.cfg.BackendName, reason(why)).Inc()
	l.f.log.Error("the backend refused events for good: they are dropped and their requests told",
		"partition", l.partition, "run", run.ID, "events", run.Events, "err", why)
	l.finish(run.Frames, cmp.Or(why.Code, event.Internal))
}

// assemble describes the frames as a run. Several are concatenated in a buffer, which the caller gives back.
func (l *lane) assemble(batch []*frame) (run *Run, joint *buffer) {
	first, last := batch[0], batch[len(batch)-1]
	run = &Run{
		Stream: l.f.cfg.Stream, Partition: l.partition,
		First: first.first, Last: last.first + uint64(last.events) - 1, Frames: len(batch),
		TableVersion: last.tableVersion, ContentType: first.framing.ContentType(),
		ContentEncoding: l.f.codec.ContentEncoding(), Payload: first.payload.b,
	}
	run.Events = int(run.Last - run.First + 1)
	run.ID = wire.RunID(wire.FrameID(l.f.cfg.Gateway, run.Stream, uint32(run.Partition), run.First), run.Frames)
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

// finish takes the run in flight off the queue and settles its events: confirmed, or refused with a code.
func (l *lane) finish(frames int, refused event.Code) {
	done, held := l.popRun(frames, refused != "")
	l.f.budget.Release(held)
	for _, fr := range done {
		fr.settle(refused)
		fr.recycle()
	}
}

// popRun takes the run in flight, n frames, off the queue.
func (l *lane) popRun(n int, refused bool) (done []*frame, held int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	done = slices.Clone(l.queue[:n])
	clear(l.queue[:n])
	l.queue, l.sealed = l.queue[n:], l.sealed-n
	for _, fr := range done {
		held += fr.held
		l.counts.inflight -= fr.events
		if refused {
			l.counts.refused += uint64(fr.events)
		} else {
			l.counts.delivered += uint64(fr.events)
		}
	}
	l.counts.bytes -= held
	return done, held
}

// retry calls the backend until it succeeds, or returns the error of ctx when that ends first.
func (l *lane) retry(ctx context.Context, what string, call func(context.Context) error) error {
	for failures := 1; ; failures++ {
		err := l.once(ctx, call)
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

// once makes one try: a backend that does not answer is a failure like any other.
func (l *lane) once(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, l.f.cfg.SendTimeout)
	defer cancel()
	return call(ctx)
}
