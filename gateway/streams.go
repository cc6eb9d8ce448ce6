package gateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/headgate-io/headgate/control"
	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/gateway/config"
	"github.com/headgate-io/headgate/ingest"
)

// Who a definition belongs to.
const (
	managedByFile    = "file"
	managedByAPI     = "api"
	managedByGateway = "gateway" // a dead letter
)

// Open returns the stream called name, or where it may be made on first use one that is made with the first events that are
// to be stored.
func (g *Gateway) Open(name string) (ingest.Stream, error) {
	if err := g.notAccepting(); err != nil {
		return nil, err
	}
	if err := ours(name); err != nil {
		return nil, err
	}
	s, err := g.find(name)
	if err == nil {
		if err := s.room(); err != nil { // before the body is read
			return nil, err
		}
		return s, nil
	}
	if p, ok := errors.AsType[*event.Problem](err); !ok || p.Code != event.UnknownStream || !g.cfg.CreatesStreams() {
		return nil, err
	}
	if err := g.roomForStream(name); err != nil {
		return nil, err
	}
	return &prospect{g: g, name: name}, nil
}

// notAccepting says why no events are taken at the moment; nil when they are.
func (g *Gateway) notAccepting() error {
	switch {
	case g.accepting.Load():
		return nil
	case g.stopping.Load():
		return event.Problemf(event.Draining, "the gateway is stopping; send to another one, or again when it is back")
	}
	return event.Problemf(event.Starting, "the gateway is starting; send again in a moment")
}

// roomForStream refuses one stream more than there may be.
func (g *Gateway) roomForStream(name string) error {
	if g.streamCount() < config.MaxStreams {
		return nil
	}
	return event.Problemf(event.UnknownStream, "there is no stream %q, and none is made on first use where there are %d already; define it with `headgate stream set`", name, config.MaxStreams)
}

// brokenStream is a stream that is defined and could not be started: it refuses its requests, the others run.
type brokenStream struct {
	err      error
	revision uint64
}

// why says what the matter is, without the name of the stream, which whoever asks has said.
func (b *brokenStream) why(name string) string {
	return strings.TrimPrefix(b.err.Error(), "stream "+name+": ")
}

// find returns an open stream.
func (g *Gateway) find(name string) (*stream, error) {
	if s, ok := (*g.streams.Load())[name]; ok {
		return s, nil
	}
	if of, ok := deadLetterOf(name); ok {
		return nil, event.Problemf(event.UnknownStream, "stream %s has no dead letter yet: nothing of it was set aside", of)
	}
	if b, ok := g.broken.Load(name); ok {
		return nil, event.Problemf(event.Internal, "stream %s did not start: %s; mend the cause and start again, or delete the stream", name, b.(*brokenStream).why(name))
	}
	if !config.ValidName(name) {
		return nil, event.Problemf(event.BadStreamName, "a stream's name is 1 to 63 of a-z, 0-9, _ and -, and begins with a letter or a digit")
	}
	return nil, event.Problemf(event.UnknownStream, "there is no stream %q; define it in the configuration or with `headgate stream set`", name)
}

// findOrCreate is find, or makes the stream with the default definition. The caller holds g.steering.
func (g *Gateway) findOrCreate(ctx context.Context, name string) (*stream, error) {
	s, err := g.find(name)
	if err == nil || !config.ValidName(name) || !g.cfg.CreatesStreams() {
		return s, err
	}
	if err := g.roomForStream(name); err != nil {
		return nil, err
	}
	return g.createStream(ctx, name, config.Stream{}.WithDefaults(), nil)
}

// createStream stores the definition of a new stream and starts it, with its chain when that is ready. The caller holds
// g.steering.
func (g *Gateway) createStream(ctx context.Context, name string, cfg config.Stream, chain *link) (*stream, error) {
	revision, err := g.store.Streams.Write(ctx, name, cfg.Document(), 0)
	if err != nil {
		return nil, asProblem("store the definition", err)
	}
	def, err := define(cfg, revision, managedByAPI)
	if err == nil {
		err = g.startDefined(ctx, name, def, chain)
	}
	if err != nil {
		// A definition that cannot be started must not be found at the next start.
		if undo := g.store.Streams.Delete(context.WithoutCancel(ctx), name, revision); undo != nil {
			g.broken.Store(name, &brokenStream{err, revision})
		}
		return nil, asProblem("start the stream", err)
	}
	g.log.Info("stream made", "stream", name, "partitions", cfg.Partitions.String())
	return g.find(name)
}

// startStream opens a stream with its chain, runs it, and makes it findable.
func (g *Gateway) startStream(ctx context.Context, name string, cfg config.Stream, revision uint64, managed string) error {
	def, err := define(cfg, revision, managed)
	if err != nil {
		return fmt.Errorf("stream %s: %w", name, err)
	}
	return g.startDefined(ctx, name, def, nil)
}

// startDefined is startStream with a chain that is ready, nil for one that is still to be made.
func (g *Gateway) startDefined(ctx context.Context, name string, def *definition, chain *link) error {
	s, err := g.openStream(ctx, name, def)
	if err != nil {
		return fmt.Errorf("stream %s: %w", name, err)
	}
	if err := g.restoreChain(ctx, s, chain); err != nil {
		return fmt.Errorf("stream %s: %w", name, errors.Join(err, s.discard()))
	}
	g.running.Go(func() { g.failures.add(s.run(g.delivery)) })
	g.publish(func(all map[string]*stream) { all[name] = s })
	return nil
}

// publish replaces the map of streams by a changed copy.
func (g *Gateway) publish(change func(all map[string]*stream)) {
	for {
		old := g.streams.Load()
		all := maps.Clone(*old)
		change(all)
		if g.streams.CompareAndSwap(old, &all) {
			return
		}
	}
}

// streamCount returns how many streams there are, dead letters aside.
func (g *Gateway) streamCount() (n int) {
	for name := range *g.streams.Load() {
		if _, dead := deadLetterOf(name); !dead {
			n++
		}
	}
	return n
}

// asProblem makes an answer of an error: a problem stays as it is, a lost compare-and-swap says so.
func asProblem(doing string, err error) error {
	if err == nil {
		return nil
	}
	if p, ok := errors.AsType[*event.Problem](err); ok {
		return p
	}
	if errors.Is(err, control.ErrRevision) {
		return event.Problemf(event.EtagMismatch, "%s: somebody else has just changed it; read it again", doing)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
