package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/ledger"
)

const (
	usualRate   = 2000 // events a second of a replay that says nothing else
	tellEvery   = time.Second
	replayWait  = 10 * time.Second // for one batch to be delivered; from then on durable will do
	replayPause = time.Second      // before a batch that was refused for want of room is tried again
	replayTries = 30               // of it in a row
)

// Replay hands letters to their stream again. See admin.Letters.
//
// It is noted which letters are about to be handed over, then they are, then what has become of them is noted with the next
// ones: so whatever a crash leaves, only the last batch is in doubt, and reconcile finds out about it.
func (g *Gateway) Replay(ctx context.Context, stream string, o admin.LetterOrder, tell func(admin.ReplaySums) error) (sums admin.ReplaySums, err error) {
	s, err := g.find(stream)
	if err != nil {
		return sums, err
	}
	if err := ours(stream); err != nil {
		return sums, err
	}
	turn, ctx, err := g.replays.begin(ctx, stream)
	if err != nil {
		return sums, err
	}
	defer turn.end()
	book, err := g.openBook(ctx, stream)
	if err != nil {
		return sums, err
	}
	if err := g.reconcile(ctx, turn, book); err != nil {
		return sums, err
	}
	r := &replay{g: g, s: s, turn: turn, book: book, order: o, tell: tell, reader: newLetterReader(s.current.Load()), ack: event.Delivered}
	if r.after, err = s.ends(ctx); err != nil {
		return sums, err
	}
	count := func(uint64, *admin.Letter) error { r.sums.Selected++; return nil }
	if err := g.openLetters(ctx, stream, book, &o, count); err != nil {
		return r.sums, err
	}
	r.sums.Left = r.sums.Selected
	err = r.run(ctx)
	if !o.DryRun && r.sums.Selected > 0 {
		g.countReplayed(stream, &r.sums)
		g.log.Info("letters replayed", "stream", stream, "selected", r.sums.Selected, "replayed", r.sums.Replayed,
			"filtered", r.sums.Filtered, "failed", r.sums.Failed, "left", r.sums.Left, "cut_off", err != nil)
	}
	return r.sums, err
}

// ends returns where the stream's backend ends now; nil when it can't be read back with what tells a replayed event.
func (s *stream) ends(ctx context.Context) ([]uint64, error) {
	if s.delivery.bus == nil || !carriesMeta(s.current.Load().config.Codec) || s.current.Load().config.Codec == "none" {
		return nil, nil
	}
	if err := s.delivery.bus.canRead(ctx); err != nil {
		return nil, err
	}
	state, err := s.delivery.bus.reader.State(ctx, s.name)
	return state.Ends, readProblem(err)
}

// replay is one run of Replay.
type replay struct {
	g      *Gateway
	s      *stream
	turn   *replayTurn
	book   *letterBook
	order  admin.LetterOrder
	tell   func(admin.ReplaySums) error
	reader letterReader
	after  []uint64
	ack    event.Level

	sums admin.ReplaySums
	told time.Time
	next time.Time // when the next batch may go, by the rate
}

func (r *replay) run(ctx context.Context) error {
	var b replayBatch
	seen := uint64(0)
	err := r.g.openLetters(ctx, r.s.name, r.book, &r.order, func(_ uint64, l *admin.Letter) error {
		if seen++; l.Fault != "" || seen > r.sums.Selected { // damaged: it stays; or it came after the letters were counted
			return nil
		}
		if r.reader.add(&b, l) {
			return nil
		}
		if err := r.hand(ctx, &b); err != nil {
			return err
		}
		b = replayBatch{}
		r.reader.add(&b, l)
		return nil
	})
	if err == nil && len(b.letters) > 0 {
		err = r.hand(ctx, &b)
	}
	if r.order.DryRun {
		return err
	}
	// What was done is noted and removed, whoever has gone meanwhile.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), steerTimeout)
	defer cancel()
	if errors.Is(err, errInDoubt) {
		return event.Problemf(event.AckTimeout, "what has become of the last %d letters is not known yet; the next replay finds out before it begins", len(b.letters))
	}
	r.book.Handed = nil
	if saved := r.book.save(ctx); saved != nil {
		return errors.Join(err, saved)
	}
	r.g.sweepLetters(ctx, r.s.name, r.book)
	return err
}

// errInDoubt ends a replay that does not know what has become of its last batch.
var errInDoubt = errors.New("the outcome of the last batch is not known")

// hand hands a batch over, waits for what becomes of it, and counts it.
func (r *replay) hand(ctx context.Context, b *replayBatch) error {
	if err := r.pace(ctx, len(b.letters)); err != nil {
		return err
	}
	h := &handOver{letters: b.letters, done: make(chan struct{})}
	if r.order.DryRun {
		made := b.batch(r.s.name, r.ack, time.Now())
		made.Trial = true
		err := r.s.Accept(ctx, made)
		if err == nil {
			h.count(made, &r.sums)
		}
		return errors.Join(err, r.report())
	}
	r.book.Handed = &ledger.Handed{After: r.after}
	for i := range b.letters {
		r.book.Handed.Add(b.letters[i].Gateway, b.letters[i].Number)
	}
	if err := r.book.save(ctx); err != nil {
		return err
	}
	if err := r.accept(ctx, b, h); err != nil {
		return err
	}
	h.settle(r.book, &r.sums)
	if r.after == nil { // nobody could find out about it later
		r.book.Handed = nil
		if err := r.book.save(ctx); err != nil {
			return err
		}
	}
	return r.report()
}

// accept is retried for as long as there is no room.
func (r *replay) accept(ctx context.Context, b *replayBatch, h *handOver) error {
	for tries := 1; ; tries++ {
		made := b.batch(r.s.name, r.ack, time.Now())
		made.Late = h.late
		err := r.give(ctx, made)
		p, _ := errors.AsType[*event.Problem](err)
		switch {
		case err == nil:
			h.outcome(made, nil)
			return nil
		case p == nil:
			return err
		case p.Stored == event.StoredDurable:
			r.ack = event.Durable // the backend is slow or away: what the spool has is safe
			h.outcome(made, nil)
			return nil
		case p.Stored == event.StoredUnknown:
			return r.wait(ctx, h)
		case !hasNoRoom(p.Code) || tries == replayTries:
			return err
		}
		if !pauseFor(ctx, replayPause) {
			return context.Cause(ctx)
		}
	}
}

// give is Accept with a time of its own, of which the end of ctx leaves a moment: a batch that is handed over is best waited for.
func (r *replay) give(ctx context.Context, b *event.Batch) error {
	waiting, cancel := context.WithTimeout(context.WithoutCancel(ctx), replayWait)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(replayPause, cancel) })()
	return r.s.Accept(waiting, b)
}

// hasNoRoom tells that nothing was stored, and that this can be otherwise in a second.
func hasNoRoom(code event.Code) bool {
	return code == event.Overloaded || code == event.SpoolFull || code == event.BackendFull
}

// wait waits for an outcome that comes late; when there is no time for that, the next one finds out.
func (r *replay) wait(ctx context.Context, h *handOver) error {
	select {
	case <-h.done:
		if h.err == nil {
			return nil
		}
	case <-ctx.Done():
		r.turn.leave(h)
	}
	return errInDoubt
}

// pace waits for the rate to allow so many events.
func (r *replay) pace(ctx context.Context, events int) error {
	rate := r.order.Rate
	if rate == 0 {
		rate = usualRate
	}
	now := time.Now()
	if wait := r.next.Sub(now); wait > 0 {
		if !pauseFor(ctx, wait) {
			return context.Cause(ctx)
		}
		now = r.next
	}
	r.next = now.Add(time.Duration(events) * time.Second / time.Duration(rate))
	return ctx.Err()
}

func pauseFor(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// report tells how far it is, now and then.
func (r *replay) report() error {
	if time.Since(r.told) < tellEvery {
		return nil
	}
	r.told = time.Now()
	return r.tell(r.sums)
}
