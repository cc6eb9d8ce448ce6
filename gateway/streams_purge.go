package gateway

import (
	"context"
	"time"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward/jetstream"
	"github.com/headgate-io/headgate/internal/settings"
)

// Purge removes runs that a stream's backend holds. See admin.Purger.
func (g *Gateway) Purge(ctx context.Context, name string, order admin.PurgeOrder) (runs uint64, err error) {
	s, err := g.find(name)
	if err != nil {
		return 0, err
	}
	b := s.delivery.bus
	if b == nil {
		return 0, event.Problemf(event.NotReadable, "stream %s goes to %s, which holds nothing that could be removed from here", name, s.current.Load().config.Backend)
	}
	var p jetstream.Purge
	if order.Keep != nil {
		p.Count, p.Keep = true, *order.Keep
	} else {
		var age settings.Duration
		if err := age.UnmarshalText([]byte(order.OlderThan)); err != nil {
			return 0, event.Problemf(event.BadParameter, "older_than: %v", err)
		}
		p.Before = time.Now().Add(-time.Duration(age))
	}
	runs, err = b.keeper.Purge(ctx, name, b.spread, p)
	if err != nil {
		return runs, event.Problemf(event.BackendUnavailable, "%d runs have gone, then: %v", runs, err)
	}
	g.log.Info("stream purged", "stream", name, "runs", runs)
	return runs, nil
}
