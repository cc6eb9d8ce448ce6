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
	"github.com/headgate-io/headgate/plugins"
)

// activation is a plugin in a chain, as it is stored and as the admin API knows it.
type activation admin.Activation

// activations reads the plugins of a configuration.
func activations(list []PluginConfig) (all []activation) {
	for _, p := range list {
		a := activation{Plugin: p.Name, Digest: p.Digest, OnError: p.OnError}
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
func (a activation) config() PluginConfig {
	p := PluginConfig{Name: a.Plugin, Digest: a.Digest, OnError: a.OnError}
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
	return shown(s.chain.Load().activations), nil
}

func shown(all []activation) []admin.Activation {
	out := make([]admin.Activation, len(all))
	for i, a := range all {
		out[i] = admin.Activation(a)
	}
	return out
}

// Activate puts a plugin into a stream's chain: in the place it has, else at the end.
func (g *Gateway) Activate(ctx context.Context, name string, a admin.Activation) ([]admin.Activation, error) {
	if err := ours(name); err != nil {
		return nil, err
	}
	if err := g.tryAhead(ctx, activation(a)); err != nil {
		return nil, err
	}
	g.steering.Lock()
	defer g.steering.Unlock()
	s, err := g.findOrCreate(ctx, name)
	if err != nil {
		return nil, err
	}
	chain := slices.Clone(s.chain.Load().activations)
	if i := slices.IndexFunc(chain, func(b activation) bool { return b.Plugin == a.Plugin }); i >= 0 {
		chain[i] = activation(a)
	} else {
		chain = append(chain, activation(a))
	}
	return g.changeChain(ctx, s, chain)
}

// Deactivate takes a plugin out of a stream's chain.
func (g *Gateway) Deactivate(ctx context.Context, name, plugin string) ([]admin.Activation, error) {
	if err := ours(name); err != nil {
		return nil, err
	}
	g.steering.Lock()
	defer g.steering.Unlock()
	s, err := g.find(name)
	if err != nil {
		return nil, err
	}
	old := s.chain.Load().activations
	chain := slices.DeleteFunc(slices.Clone(old), func(a activation) bool { return a.Plugin == plugin })
	if len(chain) == len(old) {
		return nil, event.Problemf(event.UnknownPlugin, "plugin %s is not active in stream %s", plugin, name)
	}
	return g.changeChain(ctx, s, chain)
}

// changeChain makes the new chain ready, stores it, and swaps it in between batches. The caller holds g.steering.
func (g *Gateway) changeChain(ctx context.Context, s *stream, chain []activation) ([]admin.Activation, error) {
	next, err := g.buildChain(ctx, s.current.Load(), chain)
	if err != nil {
		return nil, err
	}
	if err := g.storeChain(ctx, s.name, next.activations); err != nil {
		next.retire()
		return nil, err
	}
	s.swapChain(next)
	g.log.Info("plugins changed", "stream", s.name, "chain", next.String())
	return shown(next.activations), nil
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
		names = append(names, fmt.Sprintf("%s@%.15s", a.Plugin, a.Digest))
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
		step, err := g.loadStep(ctx, &l.activations[i])
		if err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	limits := def.settings.Limits
	chain, err := g.host.NewChain(ctx, steps, plugins.Rules{
		MaxEvent: int(limits.Event), MaxDepth: limits.Depth, PassUTF8: def.settings.PassUTF8, Watch: def.settings.Watch,
	})
	l.chain = chain
	return l, asProblem("start the plugins", err)
}

// tryAhead compiles and starts a plugin before anybody holds g.steering for it, since that may take seconds; what it
// compiled is loaded from the cache then, in no time. What does not load or start is refused without the lock.
func (g *Gateway) tryAhead(ctx context.Context, a activation) error {
	cfg := StreamConfig{}.withDefaults()
	cfg.Plugins = []PluginConfig{a.config()}
	return g.tryChain(ctx, cfg)
}

// loadStep resolves an activation, in place, and loads its module.
func (g *Gateway) loadStep(ctx context.Context, a *activation) (plugins.Step, error) {
	p, err := g.store.Plugins.Read(ctx, a.Plugin)
	if errors.Is(err, control.ErrNotFound) {
		return plugins.Step{}, event.Problemf(event.UnknownPlugin, "there is no plugin %q; upload it with `headgate plugin push %[1]s FILE`", a.Plugin)
	}
	if err != nil {
		return plugins.Step{}, asProblem("read the plugin", err)
	}
	if a.Digest == "" {
		a.Digest = p.Versions[len(p.Versions)-1].Digest
	}
	at := slices.IndexFunc(p.Versions, func(v control.Version) bool { return v.Digest == a.Digest })
	if at < 0 {
		return plugins.Step{}, event.Problemf(event.UnknownPlugin, "plugin %s has no version %s", a.Plugin, a.Digest)
	}
	policy, err := parseOnError(a.OnError)
	if err != nil {
		return plugins.Step{}, err
	}
	wasm, err := g.store.Plugins.Module(ctx, a.Digest)
	if err != nil {
		return plugins.Step{}, asProblem("read the module", err)
	}
	if err := g.host.Trusted(wasm, p.Versions[at].Signature); err != nil {
		return plugins.Step{}, asProblem("load plugin "+a.Plugin, err)
	}
	module, err := g.host.Load(ctx, wasm)
	if err != nil {
		return plugins.Step{}, asProblem("load plugin "+a.Plugin, err)
	}
	return plugins.Step{Name: a.Plugin, Module: module, Config: a.Config, OnError: policy}, nil
}

// maxKey is how many bytes a partition key may have, whoever sets it.
const maxKey = 1 << 10

// parseOnError reads reject, deadletter, pass or default_key=KEY; empty leaves it to the kind of plugin.
// Errors are an *event.Problem.
func parseOnError(text string) (plugins.Policy, error) {
	word, key, _ := strings.Cut(text, "=")
	if len(key) > maxKey {
		return plugins.Policy{}, event.Problemf(event.BadConfiguration, "on_error: the key has %d bytes, the limit is %d", len(key), maxKey)
	}
	return plugins.ParsePolicy(word, key)
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

// restoreChain gives a stream that starts the chain it had, or the one of its definition when it never had one. A chain
// that cannot be built leaves the stream refusing its requests.
func (g *Gateway) restoreChain(ctx context.Context, s *stream) error {
	def := s.current.Load()
	chain := activations(def.config.Plugins)
	doc, err := g.store.Activations.Read(ctx, s.name)
	switch {
	case err == nil:
		chain = nil
		if err := json.Unmarshal(doc.Value, &chain); err != nil {
			return fmt.Errorf("stored activation: %w", err)
		}
	case !errors.Is(err, control.ErrNotFound):
		return fmt.Errorf("read activation: %w", err)
	}
	l, err := g.buildChain(ctx, def, chain)
	if err != nil {
		g.log.Error("plugins do not load: the stream refuses its requests until a version that loads is activated", "stream", s.name, "error", err)
		l = &link{activations: chain, err: err}
	}
	s.chain.Store(l)
	g.sayOverruled(s)
	return nil
}
