package forward

import (
	"context"
	"time"

	"github.com/headgate-io/headgate/sdk/wire"
)

// sealFrames is the lane's sealer: it seals frame after frame until the lane is closed and has no more, or ctx ends.
func (l *lane) sealFrames(ctx context.Context) {
	if l.introduce(ctx) != nil {
		return
	}
	close(l.numbered)
	for ctx.Err() == nil {
		ready, done := l.frameToSeal(time.Now())
		switch {
		case done:
			return
		case ready:
			if l.sealNextFrame(ctx) != nil {
				return
			}
			continue
		}
		select {
		case <-l.sealer:
		case <-l.timer.C:
		case <-ctx.Done():
		}
	}
}

// frameToSeal tells whether there is a frame to seal, or that none will come any more. While a run is in flight or waits
// for its turn the open frame may grow beyond its time: sealed now it would only wait, unless it is for the spool.
func (l *lane) frameToSeal(now time.Time) (ready, done bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.sealed < len(l.queue):
		return true, false
	case l.open == nil:
		return false, l.closing
	}
	return l.closing || l.open.released || !now.Before(l.due) && l.worthSealing(), false
}

// worthSealing tells whether the open frame, whose time has come, would go anywhere: to the backend; or to the spool, when
// somebody waits for that and the spool does not write a frame of this lane just now, or when the backend takes nothing.
// l.mu is held.
func (l *lane) worthSealing() bool {
	return l.sealed == 0 || l.f.spool != nil && l.writing == 0 && (l.open.waited || l.trouble.Load() != nil)
}

// sealNow wakes the sealer if it has been waiting for what has just happened; l.mu is held.
func (l *lane) sealNow() {
	if l.open != nil && l.worthSealing() && !time.Now().Before(l.due) {
		wake(l.sealer)
	}
}

// sealNextFrame seals the next frame. An open one goes on growing until there is a press for it.
func (l *lane) sealNextFrame(ctx context.Context) error {
	if err := l.number(ctx); err != nil {
		return err
	}
	if err := l.reserve(ctx); err != nil {
		return err
	}
	select {
	case p := <-l.f.presses.idle:
		l.sealFrame(p, l.nextFrame())
		l.f.presses.giveBack(p)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// nextFrame returns the first frame that is not sealed, of which there is one.
func (l *lane) nextFrame() *frame {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sealed == len(l.queue) {
		l.cut()
	}
	return l.queue[l.sealed]
}

// sealFrame encodes and compresses a frame of the queue, outside the lane's lock: nobody else uses it until it counts
// as sealed.
func (l *lane) sealFrame(p *press, fr *frame) {
	fr.first = l.next
	l.next += uint64(fr.events)
	fr.codec = l.f.codec
	fr.payload = l.encode(p, fr)
	fr.draft.recycle()
	fr.draft = nil
	l.f.metrics.frameSize.Observe(float64(len(fr.payload.b)))

	held := min(fr.held, int64(cap(fr.payload.b)+frameOverhead+4*len(fr.index)+partOverhead*len(fr.parts)))
	l.f.budget.Release(fr.held - held)
	l.enterSealed(fr, held)
	if l.f.spool != nil {
		l.spoolIn(fr)
	}
}

// enterSealed counts a frame as sealed: from now on it may be sent.
func (l *lane) enterSealed(fr *frame, held int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.bytes -= fr.held - held
	fr.held, fr.lane = held, l
	l.sealed++
	l.counts.open -= fr.events
	l.counts.sealed += fr.events
	if l.f.spool != nil {
		fr.spooling = true
		l.unsafe++
		if fr.waited {
			l.writing++
			if !fr.released {
				l.f.round.enter()
			}
		}
	}
	wake(l.sender)
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
