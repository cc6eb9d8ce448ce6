package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/gateway/config"
	"github.com/headgate-io/headgate/ingest"
)

// prospect stands for a stream that a request may make, until it has events to store: what is refused makes nothing.
// One request uses it.
type prospect struct {
	g    *Gateway
	name string
	made *stream
}

// Settings returns the default ones, marked, and those of the stream once it is made.
func (p *prospect) Settings() *ingest.Settings {
	if p.made != nil {
		return p.made.Settings()
	}
	return p.g.unmade.settings
}

// Accept makes the stream and takes the batch into it.
func (p *prospect) Accept(ctx context.Context, b *event.Batch) error {
	if b.Trial {
		p.g.unmade.tryUnmade(b)
		return nil
	}
	s, err := p.g.makeStream(ctx, p.name)
	if err != nil {
		return err
	}
	p.made = s
	if !s.current.Load().isDefault() {
		return event.Problemf(event.Overloaded, "stream %s was defined while the request was read; send it again", p.name)
	}
	return s.Accept(ctx, b)
}

// isDefault reports whether a batch that was read with the default settings can be taken.
func (d *definition) isDefault() bool {
	usual := config.Stream{}.WithDefaults()
	d2 := d.config
	d2.Plugins = nil
	return string(d2.Document()) == string(usual.Document())
}

// steerTimeout bounds what making a stream on first use may take.
const steerTimeout = 30 * time.Second

// makeStream makes a stream on first use, unless somebody was faster. When it may not have its turn before ctx ends, nothing is
// made and nothing stored.
func (g *Gateway) makeStream(ctx context.Context, name string) (*stream, error) {
	ctx, cancel := context.WithTimeout(ctx, steerTimeout)
	defer cancel()
	if !g.steering.lockBefore(ctx) {
		return nil, event.Problemf(event.Overloaded, "stream %s could not be made in time, because another change is still under way; send the request again", name)
	}
	defer g.steering.Unlock()
	s, err := g.findOrCreate(ctx, name)
	if _, ok := errors.AsType[*event.Problem](err); err != nil && !ok && ctx.Err() != nil {
		g.log.Warn("a stream was not made in time", "stream", name, "error", err)
		return nil, event.Problemf(event.Overloaded, "stream %s could not be made in time; send the request again", name)
	}
	return s, err
}
