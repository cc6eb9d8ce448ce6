package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/gateway/config"
)

// A definition's plugins are the chain of a stream that no activation was ever stored for. Afterwards what is stored is in
// force, whatever the configuration file says then: so it has to be said where the two differ, and there is a way back.

// Reset gives a stream the plugins of its definition again and forgets what was activated. See admin.Chains.
func (g *Gateway) Reset(ctx context.Context, name string) ([]admin.Activation, error) {
	if err := ours(name); err != nil {
		return nil, err
	}
	s, err := g.find(name)
	if err != nil {
		return nil, err
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	def := s.current.Load()
	next, err := g.buildChain(ctx, def, activations(def.config.Plugins))
	if err != nil {
		return nil, err
	}
	if err := g.commitChain(ctx, s, next, func() error { return g.dropChain(ctx, name) }); err != nil {
		return nil, err
	}
	g.log.Info("plugins are those of the definition again", "stream", name, "chain", next.String())
	return next.shown(), nil
}

// overruled says what a file asks for that is not in force, "" when it is, or when the file says nothing of plugins.
func (s *stream) overruled() string {
	def, force := s.current.Load(), s.chain.Load().activations
	if def.managed != managedByFile || def.config.Plugins == nil || sameChain(activations(def.config.Plugins), force) {
		return ""
	}
	return fmt.Sprintf("stream %s: the configuration file says %s, in force is %s, as it was activated later; "+
		"`headgate plugin reset --stream %[1]s` gives the plugins back to the file", s.name, describeChain(activations(def.config.Plugins)), describeChain(force))
}

// sayOverruled warns at start of what overruled says.
func (g *Gateway) sayOverruled(s *stream) {
	l := s.chain.Load()
	switch note := s.overruled(); {
	case note != "":
		g.log.Warn("the plugins of the configuration file are not in force", "stream", s.name, "detail", note)
	case s.current.Load().managed == managedByFile && s.current.Load().config.Plugins == nil && len(l.activations) > 0:
		g.log.Info("plugins are in force that were activated; the configuration file names none", "stream", s.name, "chain", l.String())
	}
}

// overruledPlugins names the streams whose file asks for other plugins than are in force.
func (g *Gateway) overruledPlugins() string {
	var all []string
	streams := *g.streams.Load()
	for _, name := range slices.Sorted(maps.Keys(streams)) {
		if note := streams[name].overruled(); note != "" {
			all = append(all, note)
		}
	}
	return strings.Join(all, "; ")
}

// sameChain reports whether a chain in force is what a definition asks for, where no digest is any version.
func sameChain(asked, force []activation) bool {
	return slices.EqualFunc(asked, force, func(a, f activation) bool {
		return a.Plugin == f.Plugin && a.OnError == f.OnError && (a.Digest == "" || a.Digest == f.Digest) && sameJSON(a.Config, f.Config) &&
			a.stage() == f.stage() && a.Percent == f.Percent && cmp.Or(a.OnSuspend, config.SuspendPolicy) == cmp.Or(f.OnSuspend, config.SuspendPolicy)
	})
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	if len(a) > 0 && json.Unmarshal(a, &x) != nil || len(b) > 0 && json.Unmarshal(b, &y) != nil {
		return false
	}
	return reflect.DeepEqual(x, y)
}

func describeChain(all []activation) string {
	if len(all) == 0 {
		return "none"
	}
	said := slices.Clone(all)
	for i := range said {
		said[i].History = nil
	}
	doc, err := json.Marshal(said)
	if err != nil {
		panic("BUG: gateway: a chain is no JSON: " + err.Error())
	}
	return string(doc)
}

// mendChains tries the chains again that did not load, or not whole, and have a plugin of that name, of which there is a new version.
func (g *Gateway) mendChains(ctx context.Context, plugin string) {
	for _, s := range *g.streams.Load() {
		l := s.chain.Load()
		if (l.err != nil || l.idle != nil) && slices.ContainsFunc(l.activations, func(a activation) bool { return a.Plugin == plugin }) {
			g.mendChain(ctx, s)
		}
	}
}

func (g *Gateway) mendChain(ctx context.Context, s *stream) {
	s.changing.Lock()
	defer s.changing.Unlock()
	l := s.chain.Load()
	if l.err == nil && l.idle == nil { // somebody else has mended it
		return
	}
	next, err := g.buildWithout(ctx, s.current.Load(), l.activations)
	if err != nil {
		next = &link{activations: l.activations, err: err}
	}
	if gone := g.commitChain(ctx, s, next, func() error { return nil }); gone != nil {
		return
	}
	if err != nil {
		g.log.Error("plugins still do not load: the stream refuses its requests", "stream", s.name, "error", err)
	} else {
		g.log.Info("plugins load now: the stream takes events", "stream", s.name, "chain", next.String())
	}
}
