package forward

import (
	"context"
	"time"

	"github.com/headgate-io/headgate/sdk/wire"
)

// sealAll is the lane's sealer: it seals frame after frame until the lane is closed and has no more, or ctx ends.
func (l *lane) sealAll(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		fr, due, done := l.nextDraft(time.Now())
		switch {
		case done:
			return
		case fr != nil:
			if l.number(ctx) != nil || !l.seal(ctx, fr) {
				return
			}
			continue
		case due.IsZero():
			timer.Stop()
		default:
			timer.Reset(time.Until(due))
		}
		select {
		case <-l.sealer:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}

// nextDraft returns the first frame to seal; or when the open frame will be due, the zero time for not foreseen;
// or that nothing will come any more.
func (l *lane) nextDraft(now time.Time) (fr *frame, due time.Time, done bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sealed == len(l.queue) && l.open != nil {
		if !l.closing && now.Before(l.due) {
			return nil, l.due, false
		}
		l.cut()
	}
	if l.sealed < len(l.queue) {
		return l.queue[l.sealed], time.Time{}, false
	}
	return nil, time.Time{}, l.closing
}

// number finds out, once, where the lane's numbering goes on.
func (l *lane) number(ctx context.Context) error {
	if l.next != 0 {
		return nil
	}
	return l.retry(ctx, "resume", l.limited(func(ctx context.Context) error {
		last, err := l.f.backend.Resume(ctx, l.partition)
		if err == nil {
			l.next = last + 1
		}
		return err
	}))
}

// seal encodes and compresses a frame of the queue, outside the lane's lock: nobody else uses it until it counts
// as sealed. It reports false when ctx ended before a press was free.
func (l *lane) seal(ctx context.Context, fr *frame) bool {
	var p *press
	select {
	case p = <-l.f.presses.idle:
	case <-ctx.Done():
		return false
	}
	fr.first = l.next
	l.next += uint64(fr.events)
	fr.payload = l.encode(p, fr)
	l.f.presses.giveBack(p)
	fr.draft.recycle()
	fr.draft = nil
	l.f.metrics.frameSize.Observe(float64(len(fr.payload.b)))

	held := min(fr.held, int64(cap(fr.payload.b)+frameOverhead+4*len(fr.index)+partOverhead*len(fr.parts)))
	l.f.budget.Release(fr.held - held)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.bytes -= fr.held - held
	fr.held = held
	l.sealed++
	l.counts.open -= fr.events
	l.counts.sealed += fr.events
	wake(l.sender)
	return true
}

// encode returns the bytes of the frame.
func (l *lane) encode(p *press, fr *frame) *buffer {
	raw, m := fr.draft.raw.b, &fr.draft.meta
	p.dictionary.fill(fr.draft)
	p.data = l.f.codec.Append(p.data[:0], raw)

	m.Gateway, m.Stream, m.Partition = l.f.cfg.Gateway, l.f.cfg.Stream, uint32(l.partition)
	m.First, m.RawLen, m.DataLen = fr.first, uint64(len(raw)), uint64(len(p.data))
	p.block = wire.AppendMeta(p.block[:0], m, nil)
	m.Routes, m.EventRoute, m.Epochs = nil, nil, nil // the press keeps them

	payload := take(len(p.block) + len(p.data) + skippableHeader)
	payload.b = wire.AppendFrame(payload.b, l.f.codec.Name(), p.block, p.data)
	return payload
}

// skippableHeader is more than a codec needs to hide the metadata in its format.
const skippableHeader = 32
