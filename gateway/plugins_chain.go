package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/control"
	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/gateway/config"
	"github.com/headgate-io/headgate/plugins"
)

// activation is a plugin in a chain, as it is stored and as the admin API knows it.
type activation admin.Activation

// activations reads the plugins of a configuration.
func activations(list []config.Plugin) (all []activation) {
	for _, p := range list {
		a := activation{Plugin: p.Name, Digest: p.Digest, OnError: p.OnError, Stage: p.Stage, Percent: p.Percent, OnSuspend: p.OnSuspend}
		if p.Config != nil {
			doc, err := json.Marshal(p.Config)
			if err != nil {
				panic("BUG: gateway: configuration of a plugin is no JSON: " + err.Error())
			}
			a.Config = doc
		}
		all = append(all, a)
	}
	return all
}

// config is the inverse of activations.
func (a activation) config() config.Plugin {
	p := config.Plugin{Name: a.Plugin, Digest: a.Digest, OnError: a.OnError, Percent: a.Percent, OnSuspend: a.OnSuspend}
	if a.stage() != config.StageActive {
		p.Stage = a.Stage
	}
	if len(a.Config) > 0 {
		p.Config = a.Config
	}
	return p
}

// Chain returns which plugins run in a stream. See admin.Chains.
func (g *Gateway) Chain(_ context.Context, name string) ([]admin.Activation, error) {
	s, err := g.find(name)
	if err != nil {
		return nil, err
	}
	return s.chain.Load().shown(), nil
}

// shown is the chain as the admin API has it.
func (l *link) shown() []admin.Activation {
	out := make([]admin.Activation, len(l.activations))
	for i, a := range l.activations {
		a.Stage = a.stage()
		out[i] = admin.Activation(a)
	}
	if l.chain != nil {
		compared(out, l.chain.Comparisons())
	}
	return out
}

// Activate puts a plugin into a stream's chain: in the place it has, else at the end.
func (g *Gateway) Activate(ctx context.Context, name string, a admin.Activation) ([]admin.Activation, error) {
	if err := ours(name); err != nil {
		return nil, err
	}
	cfg := activation(a).config()
	if err := cfg.StageProblem(); err != nil {
		return nil, err
	}
	if err := configProblem(a.Plugin, a.Config); err != nil {
		return nil, err
	}
	a.History, a.Suspended, a.Comparison = nil, nil, nil // of answers only
	s, err := g.find(name)
	if err != nil {
		if err := g.tryAhead(ctx, activation(a)); err != nil { // before there is a stream for it
			return nil, err
		}
		if s, err = g.obtain(ctx, name); err != nil {
			return nil, err
		}
	}
	v, err := g.findStored(ctx, a.Plugin, a.Digest)
	if err != nil {
		return nil, err
	}
	a.Digest = v.Digest
	return g.changeChain(ctx, s, a.Plugin, func(chain []activation) ([]activation, error) {
		return enact(chain, activation(a)), nil
	})
}

// obtain finds or makes a stream.
func (g *Gateway) obtain(ctx context.Context, name string) (*stream, error) {
	g.steering.Lock()
	defer g.steering.Unlock()
	return g.findOrCreate(ctx, name)
}

// Change changes what is in a stream's chain. See admin.Chains.
func (g *Gateway) Change(ctx context.Context, name string, c admin.Change) ([]admin.Activation, error) {
	if err := ours(name); err != nil {
		return nil, err
	}
	if c.Do == admin.ResetChain {
		return g.Reset(ctx, name)
	}
	s, err := g.find(name)
	if err != nil {
		return nil, err
	}
	return g.changeChain(ctx, s, c.Plugin, func(chain []activation) ([]activation, error) {
		switch c.Do {
		case admin.RollBack:
			return rollBack(chain, c.Plugin, func(digest string) bool { _, err := g.findStored(ctx, c.Plugin, digest); return err == nil })
		case admin.Promote:
			return promote(chain, c.Plugin)
		case admin.Resume:
			return resume(chain, c.Plugin)
		}
		return withdraw(chain, c.Plugin, c.Stage)
	})
}

// Deactivate takes a plugin out of a stream's chain.
func (g *Gateway) Deactivate(ctx context.Context, name, plugin string) ([]admin.Activation, error) {
	return g.Change(ctx, name, admin.Change{Do: admin.Deactivate, Plugin: plugin})
}

// changeChain makes a stream's next chain of what it has, in which change may alter a plugin, stores it, and swaps it in between
// batches. Making it may take seconds, in which other streams can be made and changed.
func (g *Gateway) changeChain(ctx context.Context, s *stream, plugin string, change func(chain []activation) ([]activation, error)) ([]admin.Activation, error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	before := s.chain.Load()
	chain, err := change(slices.Clone(before.activations))
	if err != nil {
		return nil, err
	}
	next, err := g.buildChain(ctx, s.current.Load(), chain)
	if err != nil {
		return nil, err
	}
	next.inherit(before, plugin)
	err = g.commitChain(ctx, s, next, func() error { return g.storeChain(ctx, s.name, next.activations) })
	if err != nil {
		return nil, err
	}
	g.log.Info("plugins changed", "stream", s.name, "chain", next.String())
	return next.shown(), nil
}

// commitChain puts a chain into force once store has stored it, or frees it. It is what of a change excludes all others: the
// stream and the versions are still there. The caller holds s.changing, which is always taken first.
func (g *Gateway) commitChain(ctx context.Context, s *stream, next *link, store func() error) error {
	g.steering.Lock()
	defer g.steering.Unlock()
	err := g.stillThere(ctx, s, next)
	if err == nil {
		err = store()
	}
	if err != nil {
		next.retire()
		return err
	}
	g.attend(s, next)
	s.swapChain(next)
	return nil
}

// stillThere refuses a chain whose stream or versions were deleted while it was made.
func (g *Gateway) stillThere(ctx context.Context, s *stream, next *link) error {
	if now, err := g.find(s.name); err != nil {
		return err
	} else if now != s {
		return event.Problemf(event.EtagMismatch, "stream %s was deleted and made again meanwhile; try again", s.name)
	}
	for _, a := range next.activations {
		if _, err := g.findStored(ctx, a.Plugin, a.Digest); err != nil && next.err == nil {
			return err
		}
	}
	return nil
}

// swapChain lets the next batches use l. The old chain is freed by its last user.
func (s *stream) swapChain(l *link) { s.chain.Swap(l).retire() }

func (l *link) retire() {
	if l.chain != nil {
		// Closing guests cannot lose anything; what can go wrong has nobody to tell.
		_ = l.chain.Retire()
	}
}

// String names the chain's plugins in order.
func (l *link) String() string {
	var names []string
	for _, a := range l.activations {
		name := fmt.Sprintf("%s@%.15s", a.Plugin, a.Digest)
		switch a.stage() {
		case config.StageShadow:
			name += "(shadow)"
		case config.StageCanary:
			name += fmt.Sprintf("(canary %d %%)", a.Percent)
		}
		if a.Suspended != nil {
			name += "(suspended)"
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// buildChain loads the modules, newest versions where no digest is given, and makes their instances.
func (g *Gateway) buildChain(ctx context.Context, def *definition, list []activation) (*link, error) {
	l := &link{activations: slices.Clone(list)}
	if len(list) == 0 {
		return l, nil
	}
	var steps []plugins.Step
	defer func() { // the chain has its own hold on them
		for _, st := range steps {
			_ = st.Module.Close()
		}
	}()
	for i := range l.activations {
		if l.activations[i].withdrawn() {
			continue
		}
		step, err := g.loadInForce(ctx, &l.activations[i])
		if err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	limits := def.settings.Limits
	chain, err := g.host.NewChain(ctx, steps, plugins.Rules{
		MaxEvent: int(limits.Event), MaxDepth: limits.Depth, PassUTF8: def.settings.PassUTF8, Watch: def.eventWatch(),
	})
	l.chain = chain
	return l, asProblem("start the plugins", err)
}

// tryAhead compiles and starts a plugin: what does not load or start makes no stream.
func (g *Gateway) tryAhead(ctx context.Context, a activation) error {
	l, err := g.buildChain(ctx, g.unmade, []activation{a})
	if err != nil {
		return err
	}
	l.retire()
	return nil
}

// loadStep resolves an activation, in place, and loads its module.
func (g *Gateway) loadStep(ctx context.Context, a *activation) (plugins.Step, error) {
	v, err := g.findStored(ctx, a.Plugin, a.Digest)
	if err != nil {
		return plugins.Step{}, err
	}
	a.Digest = v.Digest
	policy, err := config.ParseOnError(a.OnError)
	if err != nil {
		return plugins.Step{}, err
	}
	wasm, err := g.store.Plugins.Module(ctx, a.Digest)
	if err != nil {
		return plugins.Step{}, asProblem("read the module", err)
	}
	if err := g.host.Trusted(wasm, v.Signature); err != nil {
		return plugins.Step{}, asProblem("load plugin "+a.Plugin, err)
	}
	module, err := g.host.Load(ctx, wasm)
	if err != nil {
		return plugins.Step{}, asProblem("load plugin "+a.Plugin, err)
	}
	return plugins.Step{Name: a.Plugin, Module: module, Config: a.Config, OnError: policy, Stage: a.runsAs(), Percent: a.Percent}, nil
}

// findStored returns a version that is there: the newest with digest "".
func (g *Gateway) findStored(ctx context.Context, plugin, digest string) (v control.Version, err error) {
	p, err := g.store.Plugins.Read(ctx, plugin)
	if errors.Is(err, control.ErrNotFound) {
		return v, event.Problemf(event.UnknownPlugin, "there is no plugin %q; upload it with `headgate plugin push %[1]s FILE`", plugin)
	}
	if err != nil {
		return v, asProblem("read the plugin", err)
	}
	if digest == "" {
		return p.Versions[len(p.Versions)-1], nil
	}
	at := slices.IndexFunc(p.Versions, func(v control.Version) bool { return v.Digest == digest })
	if at < 0 {
		return v, event.Problemf(event.UnknownPlugin, "plugin %s has no version %s", plugin, digest)
	}
	return p.Versions[at], nil
}

// storeChain writes a stream's chain. The caller holds g.steering.
func (g *Gateway) storeChain(ctx context.Context, name string, chain []activation) error {
	doc, err := json.Marshal(chain)
	if err != nil {
		return asProblem("store the activation", err)
	}
	old, err := g.store.Activations.Read(ctx, name)
	if err != nil && !errors.Is(err, control.ErrNotFound) {
		return asProblem("read the activation", err)
	}
	_, err = g.store.Activations.Write(ctx, name, doc, old.Revision)
	return asProblem("store the activation", err)
}

// dropChain forgets a stream's chain. The caller holds g.steering.
func (g *Gateway) dropChain(ctx context.Context, name string) error {
	old, err := g.store.Activations.Read(ctx, name)
	if errors.Is(err, control.ErrNotFound) {
		return nil
	}
	if err == nil {
		err = g.store.Activations.Delete(ctx, name, old.Revision)
	}
	return asProblem("delete the activation", err)
}

// restoreChain gives a stream that starts the chain it had, or when it never had one that of its definition, which is made
// now unless it is ready. A chain that cannot be built leaves the stream refusing its requests.
func (g *Gateway) restoreChain(ctx context.Context, s *stream, ready *link) error {
	def := s.current.Load()
	chain := activations(def.config.Plugins)
	doc, err := g.store.Activations.Read(ctx, s.name)
	switch {
	case errors.Is(err, control.ErrNotFound) && ready != nil:
		g.attend(s, ready)
		s.chain.Store(ready)
		return nil
	case err == nil:
		chain = nil
		if err := json.Unmarshal(doc.Value, &chain); err != nil {
			return fmt.Errorf("stored activation: %w", err)
		}
	case !errors.Is(err, control.ErrNotFound):
		return fmt.Errorf("read activation: %w", err)
	}
	l, err := g.buildWithout(ctx, def, chain)
	if err != nil {
		g.log.Error("plugins do not load: the stream refuses its requests until a version that loads is activated", "stream", s.name, "error", err)
		l = &link{activations: chain, err: err}
	}
	g.attend(s, l)
	s.chain.Store(l)
	g.sayOverruled(s)
	g.saySuspended(s)
	return nil
}
