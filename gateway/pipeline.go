package gateway

import (
	"context"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/plugins"
)

// Accept is the way of a batch through the product, and the one place where its stages meet.
func (s *stream) Accept(ctx context.Context, b *event.Batch) error {
	if err := s.transform(ctx, b); err != nil {
		return err
	}
	if b.Strict && b.Counts().Rejected+len(b.Letters) > 0 {
		refuseLetters(b)
		return event.Problemf(event.StrictRejected, "events were refused and mode=strict stores all or nothing; see errors")
	}
	s.partitioner.Assign(b, nil)
	receipt := s.forwarder.NewReceipt()
	stale, err := s.forwarder.Forward(ctx, b, receipt, nil)
	for ; err == nil && len(stale) > 0; stale, err = s.forwarder.Forward(ctx, b, receipt, stale) {
		s.partitioner.Assign(b, stale) // a newer table is in force by now
	}
	if err != nil {
		return err
	}
	unknown := s.deadLetter.bury(ctx, b)
	if err = receipt.Wait(ctx, b.Ack); err == nil {
		err = unknown
	}
	for _, f := range receipt.Failed() {
		if f.Buried {
			b.Events[f.Index].Verdict = event.DeadLettered
		} else {
			b.Reject(f.Index, f.Code, "the backend refused the event for good")
		}
	}
	return err
}

// transform runs the plugins, then gives a key to the events that still have none.
func (s *stream) transform(ctx context.Context, b *event.Batch) error {
	chain, err := s.acquireChain()
	if err != nil {
		return err
	}
	if chain != nil {
		defer chain.Release()
		if err := chain.Process(ctx, b); err != nil {
			return err
		}
	}
	s.current.Load().key.FillKeys(b)
	return nil
}

// acquireChain returns the stream's chain, held until Release; nil when it has no plugins. A chain that is swapped
// between the load and the hold refuses to be held: then the new one is there.
func (s *stream) acquireChain() (*plugins.Chain, error) {
	for {
		link := s.chain.Load()
		if link == nil || link.chain == nil && link.err == nil {
			return nil, nil
		}
		if link.err != nil {
			return nil, event.Problemf(event.Internal, "the stream's plugins are not running: %v; activate a version that loads", link.err)
		}
		if link.chain.Acquire() {
			return link.chain, nil
		}
	}
}
