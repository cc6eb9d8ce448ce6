package gateway

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/forward/webhook"
	"github.com/headgate-io/headgate/gateway/config"
)

// webhookMaxRun bounds the body of one post: what HTTP nodes commonly take.
const webhookMaxRun = 8 << 20

// delivery is one stream's way to its backend.
type delivery struct {
	forward.Backend
	Err    func() error // why parts of it stand still, nil when none do
	close  func()
	check  func(ctx context.Context, partition int32, confirmed uint64) error // nil: it cannot be asked what it has
	maxRun int                                                                // bytes of the largest run
	away   bool                                                               // it is another process, which alone knows where lanes ended
	bus    *bus                                                               // where it can be read back and purged; nil: nowhere
}

// bus returns the JetStream server that a stream is delivered to, nil when its backend is none. A dead letter is always
// on the embedded one.
func (g *Gateway) bus(name, backend string) *bus {
	if _, dead := deadLetterOf(name); dead {
		backend = config.LocalBackend
	}
	return g.stores.buses[backend]
}

// fits refuses a definition whose largest event its backend does not take.
func (g *Gateway) fits(name string, cfg *config.Stream) error {
	if b := g.bus(name, cfg.Backend); b != nil {
		return b.fits(cfg)
	}
	return nil
}

// openDelivery opens the backend that a stream names.
func (g *Gateway) openDelivery(ctx context.Context, name string, cfg *config.Stream) (delivery, error) {
	if err := g.fits(name, cfg); err != nil {
		return delivery{}, err
	}
	if b := g.bus(name, cfg.Backend); b != nil {
		return b.open(ctx, name, g.folder.ID, cfg.Partitions.Max, g.log)
	}
	nodes := g.cfg.Backends[cfg.Backend].Webhook
	if nodes == nil { // the stream is of an earlier start, with another configuration
		return delivery{}, fmt.Errorf("its backend %s is not in the configuration: define backends.%s again", cfg.Backend, cfg.Backend)
	}
	return g.openWebhook(name, cfg.Backend, nodes)
}

func (g *Gateway) openWebhook(name, backend string, cfg *config.Webhook) (delivery, error) {
	numbers := g.folder.File(filepath.Join("webhook", backend, name+".numbers"))
	if err := os.MkdirAll(filepath.Dir(numbers), 0o700); err != nil {
		return delivery{}, fmt.Errorf("open backend: %w", err)
	}
	b, err := webhook.Open(webhook.Config{Nodes: cfg.Nodes, Timeout: time.Duration(cfg.Timeout), Numbers: numbers}, g.log)
	if err != nil {
		return delivery{}, fmt.Errorf("open backend: %w", err)
	}
	return delivery{Backend: b, Err: b.Err, close: b.Close, maxRun: webhookMaxRun}, nil
}
