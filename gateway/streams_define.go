package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/gateway/config"
)

// Streams returns all definitions, by name. See admin.Streams.
func (g *Gateway) Streams(context.Context) (all []admin.Definition, err error) {
	streams := *g.streams.Load()
	for _, name := range slices.Sorted(maps.Keys(streams)) {
		d := streams[name].definition()
		d.Stored = streams[name].stored()
		all = append(all, d)
	}
	return all, nil
}

// Stream returns one definition.
func (g *Gateway) Stream(_ context.Context, name string) (admin.Definition, error) {
	s, err := g.find(name)
	if err != nil {
		return admin.Definition{}, err
	}
	return s.definition(), nil
}

// definition is the stream's document with the plugins that are in force.
func (s *stream) definition() admin.Definition {
	def := s.current.Load()
	cfg := def.config
	cfg.Plugins = nil
	for _, a := range s.chain.Load().activations {
		cfg.Plugins = append(cfg.Plugins, a.config())
	}
	return admin.Definition{Name: s.name, Revision: def.revision, Managed: def.managed, Document: cfg.Document()}
}

// SetStream replaces a definition or makes a stream. Its plugins, where given, become the stream's chain.
func (g *Gateway) SetStream(ctx context.Context, name string, doc json.RawMessage, when admin.Match) (admin.Definition, bool, error) {
	if err := ours(name); err != nil {
		return admin.Definition{}, false, err
	}
	cfg, err := config.ParseStream(doc)
	if err != nil {
		return admin.Definition{}, false, event.Problemf(event.BadConfiguration, "%v", err)
	}
	if err := g.cfg.KnowsBackend(cfg.Backend); err != nil {
		return admin.Definition{}, false, event.Problemf(event.BadConfiguration, "%v", err)
	}
	s, err := g.find(name)
	if err == nil {
		return s.definitionAfter(g.redefine(ctx, s, cfg, when))
	}
	if p, ok := errors.AsType[*event.Problem](err); !ok || p.Code != event.UnknownStream {
		return admin.Definition{}, false, err
	}
	if err := when.Check(0); err != nil {
		return admin.Definition{}, false, err
	}
	return g.newStream(ctx, name, cfg)
}

// newStream makes a stream as defined. Its plugins are started before anything is stored, and before anybody waits for it.
func (g *Gateway) newStream(ctx context.Context, name string, cfg config.Stream) (d admin.Definition, made bool, err error) {
	def, err := define(cfg, 0, managedByAPI)
	if err != nil {
		return d, false, event.Problemf(event.BadConfiguration, "%v", err)
	}
	chain, err := g.buildChain(ctx, def, activations(cfg.Plugins))
	if err != nil {
		return d, false, err
	}
	g.steering.Lock()
	defer g.steering.Unlock()
	if _, err = g.find(name); err == nil {
		err = event.Problemf(event.EtagMismatch, "stream %s was made by somebody else meanwhile; read it again", name)
	} else if err = g.fits(name, &cfg); err == nil {
		var s *stream
		if s, err = g.createStream(ctx, name, cfg, chain); err == nil {
			return s.definition(), true, nil
		}
	}
	chain.retire()
	return d, false, err
}

// definitionAfter is the answer to a change that ended with err.
func (s *stream) definitionAfter(err error) (admin.Definition, bool, error) {
	if err != nil {
		return admin.Definition{}, false, err
	}
	return s.definition(), false, nil
}

// redefine changes a running stream.
func (g *Gateway) redefine(ctx context.Context, s *stream, cfg config.Stream, when admin.Match) error {
	if err := g.fits(s.name, &cfg); err != nil {
		return err
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	old := s.current.Load()
	if old.managed == managedByFile {
		return event.Problemf(event.ManagedByFile, "stream %s is defined in the configuration file; change it there and start again", s.name)
	}
	if err := when.Check(old.revision); err != nil {
		return err
	}
	if err := cfg.Changeable(&old.config); err != nil {
		return err
	}
	before := s.chain.Load()
	chain := before.activations
	if cfg.Plugins != nil {
		asked := activations(cfg.Plugins)
		for i := range asked {
			v, err := g.findStored(ctx, asked[i].Plugin, asked[i].Digest)
			if err != nil {
				return err
			}
			asked[i].Digest = v.Digest
		}
		chain = succeed(chain, asked)
	}
	def, err := define(cfg, old.revision, managedByAPI)
	if err != nil {
		return event.Problemf(event.BadConfiguration, "%v", err)
	}
	next, err := g.buildChain(ctx, def, chain)
	if err != nil {
		return err
	}
	next.inherit(before, "")
	err = g.commitChain(ctx, s, next, func() error {
		if def.revision, err = g.store.Streams.Write(ctx, s.name, cfg.Document(), old.revision); err != nil {
			return asProblem("store the definition", err)
		}
		if err := g.storeChain(ctx, s.name, next.activations); err != nil {
			return err
		}
		def.filter.Continue(s.current.Load().filter)
		s.current.Store(def)
		return nil
	})
	if err != nil {
		return err
	}
	s.ids.Resize(cfg.ID.Window.IDs, time.Duration(cfg.ID.Window.Age))
	if cfg.Rate != old.config.Rate {
		s.keys.Store(newKeyRate(s.name, cfg.Rate, g.rates))
	}
	return nil
}

// DeleteStream ends a stream: its definition and activations go. Its events stay in the backend, and its routing table
// and lane numbers too, so that a stream of the same name goes on where this one stopped.
func (g *Gateway) DeleteStream(ctx context.Context, name string, when admin.Match) error {
	if err := ours(name); err != nil {
		return err
	}
	g.steering.Lock()
	defer g.steering.Unlock()
	if b, ok := g.broken.Load(name); ok {
		return g.deleteBroken(ctx, name, b.(*brokenStream), when)
	}
	s, err := g.find(name)
	if err != nil {
		return err
	}
	def := s.current.Load()
	if def.managed == managedByFile {
		return event.Problemf(event.ManagedByFile, "stream %s is defined in the configuration file; take it out there and start again", name)
	}
	if err := when.Check(def.revision); err != nil {
		return err
	}
	if err := g.dropChain(ctx, name); err != nil {
		return err
	}
	if err := g.store.Streams.Delete(ctx, name, def.revision); err != nil {
		return asProblem("delete the definition", err)
	}
	g.publish(func(all map[string]*stream) { delete(all, name) })
	s.forwarder.Close()
	select {
	case <-s.done:
	case <-ctx.Done(): // it goes on draining; the stop of the gateway waits for it
	}
	s.swapChain(&link{})
	g.forwardMetrics.Forget(name)
	g.log.Info("stream deleted", "stream", name)
	return nil
}

// deleteBroken deletes a stream that did not start.
func (g *Gateway) deleteBroken(ctx context.Context, name string, b *brokenStream, when admin.Match) error {
	if err := when.Check(b.revision); err != nil {
		return err
	}
	if err := g.dropChain(ctx, name); err != nil {
		return err
	}
	if err := g.store.Streams.Delete(ctx, name, b.revision); err != nil {
		return asProblem("delete the definition", err)
	}
	g.broken.Delete(name)
	return nil
}

// Table returns the routing table in force. See admin.Routing.
func (g *Gateway) Table(_ context.Context, name string) (json.RawMessage, error) {
	s, err := g.find(name)
	if err != nil {
		return nil, err
	}
	return s.describeTable()
}
