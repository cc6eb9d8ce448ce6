package gateway

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/forward/jetstream"
	"github.com/headgate-io/headgate/forward/webhook"
	"github.com/headgate-io/headgate/internal/settings"
)

// BackendConfig is one place frames go to; exactly one kind is set.
type BackendConfig struct {
	JetStream *JetStreamConfig `json:"jetstream"`
	Webhook   *WebhookConfig   `json:"webhook"`
}

// JetStreamConfig is the NATS JetStream server inside the process.
type JetStreamConfig struct {
	Embedded bool           `json:"embedded"`
	MaxBytes settings.Bytes `json:"max_bytes"` // of all its streams together; 0: the smaller of 10 GiB and half of the free space
}

// WebhookConfig is a set of HTTP nodes, of which each holds a share of the partitions.
type WebhookConfig struct {
	Nodes   []string          `json:"nodes"`   // URLs that runs are posted to
	Timeout settings.Duration `json:"timeout"` // of one post; 10 s
}

// LocalBackend is the name of the backend that is there without being configured: the embedded JetStream.
const LocalBackend = "local"

// webhookMaxRun bounds the body of one post: what HTTP nodes commonly take.
const webhookMaxRun = 8 << 20

// problem returns what is wrong with the definition of the backend called name.
func (b *BackendConfig) problem(name string) error {
	switch {
	case b.JetStream != nil && b.Webhook != nil:
		return fmt.Errorf("set jetstream or webhook, not both")
	case b.JetStream != nil:
		return mustBe(b.JetStream.Embedded && name == LocalBackend, "jetstream is the embedded one in this version: embedded: true, under the name %q", LocalBackend)
	case b.Webhook != nil:
		return webhook.CheckNodes(b.Webhook.Nodes)
	}
	return fmt.Errorf("set jetstream or webhook")
}

// delivery is one stream's way to its backend.
type delivery struct {
	forward.Backend
	Err    func() error // why parts of it stand still, nil when none do
	close  func()
	maxRun int  // bytes of the largest run
	stored bool // can be read back through the embedded server
}

// openDelivery opens the backend that a stream names.
func (g *Gateway) openDelivery(ctx context.Context, name, backend string) (delivery, error) {
	if _, dead := deadLetterOf(name); dead {
		return g.openEmbedded(ctx, name, deadLetterBytes(g.stores.maxBytes))
	}
	cfg := g.cfg.Backends[backend]
	if cfg.Webhook != nil {
		return g.openWebhook(name, backend, cfg.Webhook)
	}
	return g.openEmbedded(ctx, name, g.stores.maxBytes/maxStreams)
}

func (g *Gateway) openEmbedded(ctx context.Context, name string, maxBytes int64) (delivery, error) {
	b, err := jetstream.Open(ctx, g.stores.writer, jetstream.Config{Stream: name, Gateway: g.folder.id, MaxBytes: maxBytes}, g.log)
	if err != nil {
		return delivery{}, fmt.Errorf("open backend: %w", err)
	}
	return delivery{Backend: b, Err: b.Err, close: func() {}, maxRun: b.MaxRun(), stored: true}, nil
}

func (g *Gateway) openWebhook(name, backend string, cfg *WebhookConfig) (delivery, error) {
	numbers := g.folder.file(filepath.Join("webhook", backend, name+".numbers"))
	if err := os.MkdirAll(filepath.Dir(numbers), 0o700); err != nil {
		return delivery{}, fmt.Errorf("open backend: %w", err)
	}
	b, err := webhook.Open(webhook.Config{Nodes: cfg.Nodes, Timeout: time.Duration(cfg.Timeout), Numbers: numbers}, g.log)
	if err != nil {
		return delivery{}, fmt.Errorf("open backend: %w", err)
	}
	return delivery{Backend: b, Err: b.Err, close: b.Close, maxRun: webhookMaxRun}, nil
}
