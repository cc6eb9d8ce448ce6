package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/forward/spool"
	"github.com/headgate-io/headgate/ingest"
	"github.com/headgate-io/headgate/internal/jsonscan"
	"github.com/headgate-io/headgate/internal/window"
	"github.com/headgate-io/headgate/partitioner"
	"github.com/headgate-io/headgate/plugins"
	"github.com/headgate-io/headgate/plugins/builtin"
)

// stream is a stream that takes events. Its definition and its chain are replaced whole while it runs.
type stream struct {
	name        string
	current     atomic.Pointer[definition]
	chain       atomic.Pointer[link]
	partitioner *partitioner.Partitioner
	forwarder   *forward.Forwarder
	delivery    delivery
	deadLetter  *deadLetter             // nil for a dead letter
	spool       *spool.Spool            // likewise
	keys        atomic.Pointer[keyRate] // nil: keys have no rate
	ids         *window.Set
	secret      window.Secret // of the identities in it
	done        chan struct{} // closed when the forwarder has ended
}

// definition is a version of what the stream's owner asked for, made ready for use.
type definition struct {
	config   StreamConfig
	revision uint64
	managed  string // "file" or "api"
	settings *ingest.Settings
	key      builtin.Key
	id       builtin.ID
}

// link is the stream's chain of plugins: none, running, or not running for a reason.
type link struct {
	activations []activation
	chain       *plugins.Chain
	err         error
}

// Settings returns what ingest needs to know of the stream's requests.
func (s *stream) Settings() *ingest.Settings { return s.current.Load().settings }

// define makes a definition ready; its config has defaults and no problems.
func define(cfg StreamConfig, revision uint64, managed string) (*definition, error) {
	pointer, err := jsonscan.ParsePointer(cfg.Key.JSON)
	if err != nil {
		return nil, fmt.Errorf("key.json: %w", err)
	}
	watch := make([]jsonscan.Pointer, event.FieldKey+1)
	watch[event.FieldKey] = pointer
	id := cfg.ID.extractor()
	if id.JSON != "" {
		if pointer, err = jsonscan.ParsePointer(id.JSON); err != nil {
			return nil, fmt.Errorf("id.json: %w", err)
		}
		watch = append(watch, pointer) // event.FieldID
	}
	def, _ := event.ParseLevel(cfg.Ack.Default)
	low, _ := event.ParseLevel(cfg.Ack.Min)
	high, _ := event.ParseLevel(cfg.Ack.Max)
	key := builtin.Key{JSON: cfg.Key.JSON, Header: strings.ToLower(cfg.Key.Header), CE: cfg.Key.CE, Required: cfg.Key.Required}
	if err := key.Validate(); err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	return &definition{
		config: cfg, revision: revision, managed: managed, key: key, id: id,
		settings: &ingest.Settings{
			Limits: ingest.Limits{
				Body: int64(cfg.Limits.Body), Inflated: int64(cfg.Limits.Inflated), Ratio: cfg.Limits.Ratio,
				Event: int64(cfg.Limits.Event), Events: cfg.Limits.Events, Depth: cfg.Limits.Depth,
			},
			Headers:    slices.DeleteFunc([]string{key.Header, id.Header}, func(name string) bool { return name == "" }),
			MediaTypes: cfg.Types, PassUTF8: cfg.UTF8 == "pass",
			AckDefault: def, AckMin: low, AckMax: high, Watch: watch,
		},
	}, nil
}

// openStream brings the stream's backend and lanes up; nothing runs yet.
func (g *Gateway) openStream(ctx context.Context, name string, def *definition) (*stream, error) {
	secret, err := g.store.Secret(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("read hash secret: %w", err)
	}
	table, err := g.openTable(ctx, name, secret, def.config.Partitions.Max)
	if err != nil {
		return nil, err
	}
	s := &stream{
		name: name, partitioner: partitioner.New(table), deadLetter: g.newDeadLetter(name),
		ids: def.config.ID.window(), secret: secret, done: make(chan struct{}),
	}
	s.current.Store(def)
	s.keys.Store(newKeyRate(name, def.config.Rate, g.rates))
	s.chain.Store(&link{})
	if s.delivery, err = g.openDelivery(ctx, name, &def.config); err != nil {
		return nil, err
	}
	if s.spool, err = g.openSpool(name); err == nil {
		s.forwarder, err = g.newForwarder(s, &def.config, len(table.Partitions()))
	}
	if err != nil {
		return nil, errors.Join(err, s.discard())
	}
	return s, nil
}

// newForwarder returns the forwarder of a stream whose delivery and spool are open.
func (g *Gateway) newForwarder(s *stream, cfg *StreamConfig, partitions int) (*forward.Forwarder, error) {
	deps := forward.Deps{Budget: g.letters, Log: g.log, Metrics: g.forwardMetrics, Presses: g.presses}
	if s.deadLetter != nil { // else it is a dead letter itself
		deps.Budget, deps.DeadLetter = g.lanes.Share(g.lanes.Limit()/2), s.deadLetter
	}
	if s.spool != nil {
		deps.Spool, deps.Backlog, deps.Room = s.spool, s.spool.Backlog, s.spool.Room
	}
	frameBytes := int(cfg.Frame.Bytes)
	return forward.New(forward.Config{
		Stream: s.name, Gateway: g.folder.id, BackendName: cfg.Backend, Partitions: partitions, Codec: cfg.Codec,
		LingerWaiting: time.Duration(cfg.Linger.Waiting), LingerIdle: time.Duration(cfg.Linger.Idle),
		FrameBytes: frameBytes, FrameEvents: cfg.Frame.Events, MaxRun: min(frameBytes, s.delivery.maxRun),
	}, s.delivery, deps)
}
