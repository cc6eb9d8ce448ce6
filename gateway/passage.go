package gateway

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/internal/window"
)

// passage is what a batch waits for.
type passage struct {
	receipt *forward.Receipt
	claim   *window.Claim // of the ids that it brought first; nil for none
	twins   []window.Ref  // its events whose ids others brought before
	slow    []window.Fate // its events whose ids are free again, since their keys are over their rate
}

// forward puts the events that are kept into the lanes. From then on their ids depend on the receipt.
func (s *stream) forward(ctx context.Context, b *event.Batch, p *passage) (err error) {
	var untaken []int32 // when a later Forward fails: what it was to take
	if p.claim != nil {
		defer func() { p.settle(untaken, err) }()
		err = event.Problemf(event.Internal, "the gateway failed") // in a panic
	}
	if keys, limits := s.keys.Load(), s.limits.Load(); keys != nil || limits != nil {
		pace := pacing{keys, limits, s.partitioner.Table()}
		if err = pace.apply(b, p); err != nil {
			return err
		}
		defer func() {
			if err != nil && !isUnknown(err) {
				pace.refund(b)
			}
		}()
	}
	if err = s.classes(ctx, b); err != nil {
		return err
	}
	s.partitioner.Assign(b, nil)
	stale, err := s.forwarder.Forward(ctx, b, p.receipt, nil)
	for ; err == nil && len(stale) > 0; stale, err = s.forwarder.Forward(ctx, b, p.receipt, stale) {
		untaken = stale
		s.awaitTable(ctx, b, stale)
		s.partitioner.Assign(b, stale)
	}
	if err != nil {
		_ = p.receipt.Wait(ctx, event.Accepted) // which gives back the memory of what was not taken
	}
	return err
}

// awaitTable returns when a newer table is in force than the one that events were assigned by, or when it would be of no
// use. Events that are between two partitions wait here, as does their producer.
func (s *stream) awaitTable(ctx context.Context, b *event.Batch, events []int32) {
	newer := s.partitioner.Newer(b.TableVersion)
	if newer == nil {
		return
	}
	if a := s.adaptive; a != nil {
		a.parked.Add(int64(len(events)))
		defer func(began time.Time) {
			a.parked.Add(-int64(len(events)))
			a.stalls.note(len(events), time.Since(began))
		}(time.Now())
	}
	select {
	case <-newer:
	case <-ctx.Done():
	case <-s.done:
	}
}

// settle has the claim settled when the receipt is, or at once when Forward took nothing and failed with err.
func (p *passage) settle(untaken []int32, err error) {
	claim, receipt := p.claim, p.receipt
	problem, failed := errors.AsType[*event.Problem](err)
	lost := slices.Clip(p.slow)
	switch {
	case !failed:
		claim.Taken()
	case problem.Stored != event.StoredUnknown:
		claim.Settle(nil, problem, time.Now())
		return
	default: // the others are on their way
		for _, place := range untaken {
			lost = append(lost, window.Fate{Place: place, Verdict: event.Rejected, Code: problem.Code, Detail: problem.Detail})
		}
	}
	receipt.Then(func() {
		stopped, _ := errors.AsType[*event.Problem](receipt.Stopped())
		all := slices.Concat(lost, fates(receipt.Failed()))
		slices.SortFunc(all, func(a, b window.Fate) int { return int(a.Place - b.Place) })
		claim.Settle(all, stopped, time.Now())
	})
}

// refusedForGood is what a producer is told of an event that the backend never takes.
const refusedForGood = "the backend refused the event for good"

func fates(failures []forward.Failure) (all []window.Fate) {
	for _, f := range failures {
		fate := window.Fate{Place: int32(f.Index), Verdict: event.Rejected, Code: f.Code, Detail: refusedForGood}
		if f.Buried {
			fate.Verdict = event.DeadLettered
		}
		all = append(all, fate)
	}
	return all
}

// wait returns when all that p waits for has come as far as level. The error is an *event.Problem that says that what is
// stored is unknown.
func (p *passage) wait(ctx context.Context, level event.Level) error {
	err := p.receipt.Wait(ctx, level)
	for i := range p.twins { // when the others are not delivered, too: they are durable only with these
		if !isUnknown(err) && p.twins[i].Of.Wait(ctx, level) != nil {
			err = &event.Problem{Code: event.AckTimeout, Stored: event.StoredUnknown,
				Detail: "another request with some of these ids was not acknowledged in time; send the request again: events that have ids, with the same ones"}
		}
	}
	return err
}

// conclude sets the verdicts of the events that did not go the usual way. The error says that some outcome is unknown.
func (p *passage) conclude(b *event.Batch) (err error) {
	for _, f := range p.receipt.Failed() {
		if f.Buried {
			b.Events[f.Index].Verdict = event.DeadLettered
		} else {
			b.Reject(f.Index, f.Code, refusedForGood)
		}
	}
	for i := range p.twins {
		if unknown := twin(b, &p.twins[i]); err == nil {
			err = unknown
		}
	}
	return err
}

// later has b.Late called with the outcome, which was unknown when the request ended with err. lost says that it can't
// be found out.
func (p passage) later(b *event.Batch, err error, lost bool) {
	late, outline := b.Late, b.Outline()
	if lost {
		late(outline.Batch(), err)
		return
	}
	p.then(func() {
		b := outline.Batch()
		err := p.conclude(b)
		late(b, errors.Join(p.receipt.Stopped(), err))
	})
}

// whenSafe has b.Safe called once all that b stored is durable, if it comes to that.
func (p passage) whenSafe(b *event.Batch) {
	if len(b.Letters) > 0 && b.Ack < event.Durable {
		return // nobody waits for what was set aside
	}
	safe := b.Safe
	p.then(func() {
		unknown := p.receipt.Stopped()
		for i := range p.twins {
			if _, whole := p.twins[i].Of.Fate(p.twins[i].First); whole != nil {
				unknown = whole
			}
		}
		if unknown == nil {
			safe()
		}
	})
}

// then has f called once everything that p waits for has ended.
func (p *passage) then(f func()) {
	var left atomic.Int32
	left.Store(int32(1 + len(p.twins)))
	ended := func() {
		if left.Add(-1) == 0 {
			f()
		}
	}
	p.receipt.Then(ended)
	for i := range p.twins {
		p.twins[i].Of.Then(ended)
	}
}
