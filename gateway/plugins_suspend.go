package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/gateway/config"
	"github.com/headgate-io/headgate/plugins"
)

// withdrawn reports whether a version is not run although it is in the list: a canary that is suspended leaves its requests
// to the version in force.
func (a *activation) withdrawn() bool { return a.Suspended != nil && a.stage() == config.StageCanary }

// leansOn reports whether a version is in force in place of a's, which is suspended.
func (a *activation) leansOn(digest string) bool {
	return a.Suspended != nil && a.OnSuspend == config.SuspendPrevious && slices.ContainsFunc(a.History, func(e admin.Earlier) bool { return e.Digest == digest })
}

// loadInForce is loadStep with what runs in place of a version that is suspended: the newest one before it that loads, where
// on_suspend is previous, else it is not called.
func (g *Gateway) loadInForce(ctx context.Context, a *activation) (plugins.Step, error) {
	if a.Suspended != nil && a.OnSuspend == config.SuspendPrevious {
		for i := range a.History {
			before := a.earlier(i)
			if step, err := g.loadStep(ctx, &before); err == nil {
				return step, nil
			}
		}
	}
	step, err := g.loadStep(ctx, a)
	step.Suspended = a.Suspended != nil
	return step, err
}

// buildWithout is buildChain, or when that fails the chain without what is only tried: it hurts nobody.
func (g *Gateway) buildWithout(ctx context.Context, def *definition, list []activation) (*link, error) {
	l, err := g.buildChain(ctx, def, list)
	inForce := slices.DeleteFunc(slices.Clone(list), func(a activation) bool { return a.stage() != config.StageActive })
	if err == nil || len(inForce) == len(list) {
		return l, err
	}
	idle := err
	if l, err = g.buildChain(ctx, def, inForce); err != nil {
		return nil, err
	}
	g.log.Error("a shadow or a canary does not load and is left out", "chain", (&link{activations: list}).String(), "error", idle)
	l.activations, l.idle = slices.Clone(list), idle
	return l, nil
}

// inherit goes on with what was counted in the chain before, but for the plugin that is changed.
func (l *link) inherit(before *link, changed string) {
	if l.chain != nil && before.chain != nil {
		l.chain.Inherit(before.chain, changed)
	}
}

// attend suspends what the chain l of s says is to be suspended. It is called before l is used.
func (g *Gateway) attend(s *stream, l *link) {
	if l.chain == nil {
		return
	}
	l.chain.OnSuspend(func(plugin, digest string, stage plugins.Stage, reason string) {
		g.running.Go(func() { g.suspend(s, suspect{plugin, digest, stage.String(), reason}) })
	})
}

// suspect is a version that is to be suspended.
type suspect struct{ plugin, digest, stage, reason string }

var errNotThere = errors.New("it is not there any more")

// suspendTimeout bounds what making the chain may take that runs in place of the one with the suspended version.
const suspendTimeout = time.Minute

// suspend makes what the running chain does already last: the version is not called until somebody lifts that.
func (g *Gateway) suspend(s *stream, who suspect) {
	ctx, cancel := context.WithTimeout(g.delivery, suspendTimeout)
	defer cancel()
	log := g.log.With("stream", s.name, "plugin", who.plugin, "digest", who.digest, "stage", who.stage)
	log.Error("plugin is suspended; `headgate plugin resume` or `headgate plugin activate` lifts that", "reason", who.reason)
	g.host.Note(who.plugin, who.digest, slog.LevelError, fmt.Sprintf("suspended in stream %s (%s): %s", s.name, who.stage, who.reason))
	_, err := g.changeChain(ctx, s, who.plugin, func(chain []activation) ([]activation, error) {
		for i := range chain {
			if a := &chain[i]; a.Plugin == who.plugin && a.Digest == who.digest && a.stage() == who.stage && a.Suspended == nil {
				a.Suspended = &admin.Suspension{Since: time.Now().UTC(), Reason: who.reason}
				return chain, nil
			}
			if a := &chain[i]; a.Plugin == who.plugin && a.leansOn(who.digest) { // the one before is no better: the one before that
				at := slices.IndexFunc(a.History, func(e admin.Earlier) bool { return e.Digest == who.digest })
				a.History = a.History[at+1:]
				a.Suspended = &admin.Suspension{Since: a.Suspended.Since, Reason: fmt.Sprintf("%s; so is the version before, %.15s: %s", a.Suspended.Reason, who.digest, who.reason)}
				return chain, nil
			}
		}
		return nil, errNotThere
	})
	if err != nil && !errors.Is(err, errNotThere) {
		log.Error("the suspension is not stored, and ends with this process or the next change of the chain", "error", err)
	}
}

// saySuspended warns at start of what was suspended before.
func (g *Gateway) saySuspended(s *stream) {
	for _, a := range s.chain.Load().activations {
		if a.Suspended != nil {
			g.log.Warn("plugin is still suspended; `headgate plugin resume` or `headgate plugin activate` lifts that", "stream", s.name,
				"plugin", a.Plugin, "digest", a.Digest, "stage", a.stage(), "since", a.Suspended.Since, "reason", a.Suspended.Reason)
		}
	}
}

// instead says what becomes of the events of a version that is suspended.
func (a *activation) instead() string {
	switch {
	case a.stage() == config.StageCanary:
		return "its requests go to the version in force"
	case a.OnSuspend == config.SuspendPrevious && len(a.History) > 0:
		return "the version before takes its events"
	}
	return "its events go by on_error"
}

// pluginNotes says what is not as it was asked for, although all streams take events.
func (g *Gateway) pluginNotes() string {
	var all []string
	streams := *g.streams.Load()
	for _, name := range slices.Sorted(maps.Keys(streams)) {
		l := streams[name].chain.Load()
		for i := range l.activations {
			if a := &l.activations[i]; a.Suspended != nil {
				all = append(all, fmt.Sprintf("stream %s: plugin %s (%s, %.15s) is suspended since %s: %s; %s", name, a.Plugin, a.stage(), a.Digest,
					a.Suspended.Since.Format(time.RFC3339), a.Suspended.Reason, a.instead()))
			}
		}
		if l.chain != nil && l.chain.Acquire() {
			for _, ailing := range l.chain.Ailing() {
				all = append(all, fmt.Sprintf("stream %s: %s", name, ailing))
			}
			if err := l.chain.Release(); err != nil {
				g.log.Warn("free a chain of plugins", "stream", name, "error", err)
			}
		}
		if l.idle != nil {
			all = append(all, fmt.Sprintf("stream %s: what is tried does not run: %v", name, l.idle))
		}
	}
	if note := g.overruledPlugins(); note != "" {
		all = append(all, note)
	}
	return strings.Join(all, "; ")
}

// compared adds the figures of versions that are tried.
func compared(list []admin.Activation, figures []plugins.Comparison) {
	for _, f := range figures {
		for i := range list {
			if a := &list[i]; a.Plugin == f.Plugin && a.Stage == f.Stage.String() {
				a.Comparison = &admin.Comparison{
					Compared: f.Compared, Skipped: f.Skipped, Failed: f.Failed,
					Differ:      admin.Differ{Verdicts: f.Verdicts, Keys: f.Keys, Values: f.Values},
					Nanoseconds: f.Nanoseconds, ActiveNanoseconds: f.ActiveNanoseconds,
				}
			}
		}
	}
}

// suspendedMetric shows what is suspended.
type suspendedMetric struct {
	g    *Gateway
	desc *prometheus.Desc
}

func newSuspendedMetric(g *Gateway) suspendedMetric {
	return suspendedMetric{g, prometheus.NewDesc("headgate_plugin_suspended", "1 for a plugin of a stream that is suspended, else 0.", []string{"stream", "plugin", "stage"}, nil)}
}

// Describe is part of prometheus.Collector.
func (m suspendedMetric) Describe(to chan<- *prometheus.Desc) { to <- m.desc }

// Collect is part of prometheus.Collector. A plugin that is twice in a chain counts once.
func (m suspendedMetric) Collect(to chan<- prometheus.Metric) {
	for name, s := range *m.g.streams.Load() {
		suspended := map[[2]string]float64{}
		for _, a := range s.chain.Load().activations {
			which := [2]string{a.Plugin, a.stage()}
			if suspended[which] += 0; a.Suspended != nil {
				suspended[which] = 1
			}
		}
		for which, value := range suspended {
			to <- prometheus.MustNewConstMetric(m.desc, prometheus.GaugeValue, value, name, which[0], which[1])
		}
	}
}
