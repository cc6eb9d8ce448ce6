package gateway

import (
	"cmp"
	"context"
	"errors"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/failpoint"
	"github.com/headgate-io/headgate/plugins"
	"github.com/headgate-io/headgate/plugins/builtin"
)

// Accept is the way of a batch through the product, and the one place where its stages meet.
func (s *stream) Accept(ctx context.Context, b *event.Batch) error {
	if err := s.transform(ctx, b); err != nil {
		return err
	}
	failpoint.Pass(failpoint.Transformed)
	if b.Trial {
		return s.try(b)
	}
	if b.Strict && b.Counts().Rejected+len(b.Letters) > 0 {
		refuseLetters(b)
		return strictRefusal()
	}
	if err := s.deadLetter.afford(b); err != nil {
		return err
	}
	p := passage{receipt: s.forwarder.NewReceipt()}
	if err := s.claim(b, &p); err != nil {
		return err
	}
	lost, err := s.carry(ctx, b, &p)
	if b.HasIDs { // who is answered now finds the same ids after a crash
		s.ids.Flush()
	}
	if b.Safe != nil && err == nil {
		p.whenSafe(b)
	}
	if b.Late != nil && isUnknown(err) {
		p.later(b, err, lost)
	}
	return err
}

// carry hands the events over and waits for what becomes of them. When the error leaves that open, lost says that nobody
// will find out later either.
func (s *stream) carry(ctx context.Context, b *event.Batch, p *passage) (lost bool, err error) {
	if err := s.forward(ctx, b, p); err != nil {
		return true, err
	}
	failpoint.Pass(failpoint.Enqueued)
	b.Reach(event.Accepted)
	unburied := s.deadLetter.bury(ctx, b)
	if b.Reached != nil && b.Ack > event.Durable && p.wait(ctx, event.Durable) == nil {
		b.Reach(event.Durable)
	}
	if err := p.wait(ctx, b.Ack); err != nil {
		if !isDurable(err) {
			return unburied != nil, err
		}
		if unburied != nil {
			return true, unburied
		}
		return false, cmp.Or(p.conclude(b), err)
	}
	if unburied != nil {
		return true, unburied
	}
	return false, p.conclude(b)
}

// isUnknown tells that err leaves open what is stored.
func isUnknown(err error) bool {
	p, ok := errors.AsType[*event.Problem](err)
	return ok && p.Stored == event.StoredUnknown
}

// isDurable tells that err leaves open only when the events are delivered.
func isDurable(err error) bool {
	p, ok := errors.AsType[*event.Problem](err)
	return ok && p.Stored == event.StoredDurable
}

func strictRefusal() *event.Problem {
	return event.Problemf(event.StrictRejected, "events were refused and mode=strict stores all or nothing; see errors")
}

// transform finds the ids, runs the plugins, then gives a key to the events that still have none.
func (s *stream) transform(ctx context.Context, b *event.Batch) error {
	def := s.current.Load()
	def.id.Fill(b)
	if b.Session != "" && !def.config.ID.None {
		builtin.Number(b)
	}
	b.HasIDs = b.HasIDs && !b.Replay
	b.Trace("id")
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
	def.key.FillKeys(b)
	b.Trace("key")
	if unpaid := b.Unpaid(); unpaid != nil {
		return unpaid
	}
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
			return nil, event.Problemf(event.PluginUnavailable, "the plugins of stream %s are not running: %v", s.name, link.err)
		}
		if link.chain.Acquire() {
			return link.chain, nil
		}
	}
}
