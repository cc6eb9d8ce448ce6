package gateway

import (
	"context"

	"github.com/headgate-io/headgate/event"
)

// classes has the table say, before the first event comes that asks for a stricter order than its stream's, that there are such
// events: then nothing that has an order moves any more as in a stream without one. It is for good.
func (s *stream) classes(ctx context.Context, b *event.Batch) error {
	if b.Class == event.AsStream || s.adaptive == nil || s.partitioner.Table().Classed() {
		return nil
	}
	a := s.adaptive
	if !a.turn.lockBefore(ctx) {
		return event.Problemf(event.Overloaded, "the routing table is being changed; send the request again")
	}
	defer a.turn.Unlock()
	if t := s.partitioner.Table(); !t.Classed() {
		a.put(ctx, t.WithClasses())
	}
	if !s.partitioner.Table().Classed() { // somebody else's table is in force
		return event.Problemf(event.Overloaded, "the routing table was changed by somebody else; send the request again")
	}
	return nil
}
