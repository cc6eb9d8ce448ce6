package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/control"
	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/plugins"
)

// Plugins returns all uploaded plugins, by name. See admin.Plugins.
func (g *Gateway) Plugins(ctx context.Context) ([]admin.Plugin, error) {
	stored, err := g.store.Plugins.List(ctx)
	if err != nil {
		return nil, asProblem("list plugins", err)
	}
	all := make([]admin.Plugin, len(stored))
	for i, p := range stored {
		all[i] = g.describe(p)
	}
	return all, nil
}

// Plugin returns one plugin.
func (g *Gateway) Plugin(ctx context.Context, name string) (admin.Plugin, error) {
	p, err := g.store.Plugins.Read(ctx, name)
	if err != nil {
		return admin.Plugin{}, pluginProblem(name, err)
	}
	return g.describe(p), nil
}

func pluginProblem(name string, err error) error {
	if errors.Is(err, control.ErrNotFound) || errors.Is(err, control.ErrName) {
		return event.Problemf(event.UnknownPlugin, "there is no plugin %q; upload it with `headgate plugin push %[1]s FILE`", name)
	}
	return asProblem("read plugin "+name, err)
}

// describe shows a stored plugin, newest version first, with the streams where it is active.
func (g *Gateway) describe(p control.Plugin) admin.Plugin {
	out := admin.Plugin{Name: p.Name, Streams: g.users(p.Name, ""), Uses: g.uses(p.Name)}
	for _, v := range slices.Backward(p.Versions) {
		out.Versions = append(out.Versions, version(p.Name, v))
	}
	return out
}

func version(name string, v control.Version) admin.Version {
	var r plugins.Report
	// A report that does not decode was written by another release: what is left is still true.
	_ = json.Unmarshal(v.Report, &r)
	out := shownReport(name, &r)
	out.Digest, out.Size, out.Created = v.Digest, int64(v.Size), v.Created
	return out
}

func shownReport(name string, r *plugins.Report) admin.Version {
	out := admin.Version{Name: name, Digest: r.Digest, Size: int64(r.Size), ABI: r.ABI, Kind: r.Kind, Languages: r.Languages}
	for _, c := range r.Checks {
		out.Checks = append(out.Checks, admin.Check(c))
	}
	return out
}

// Upload admits a module as the newest version of a plugin.
func (g *Gateway) Upload(ctx context.Context, name string, wasm, signature []byte) (admin.Version, bool, error) {
	report, err := g.noRoom(ctx, wasm)
	if err != nil {
		return admin.Version{}, false, err
	}
	if report == nil {
		report, err = g.host.AdmitSigned(ctx, wasm, signature)
	}
	if err != nil {
		return admin.Version{}, false, asProblem("check the module", err)
	}
	g.noteUpload(name, report)
	if !report.OK() {
		g.forget(ctx, report.Digest)
		return shownReport(name, report), false, nil
	}
	doc, err := json.Marshal(report)
	if err != nil {
		return admin.Version{}, false, err
	}
	v, added, full, err := g.keepModule(ctx, name, wasm, control.Version{Created: time.Now().UTC(), Report: doc, Signature: signature})
	if err != nil {
		return admin.Version{}, false, asProblem("store the module", err)
	}
	if full != nil {
		return shownReport(name, full), false, nil
	}
	if added {
		g.log.Info("plugin uploaded", "plugin", name, "digest", v.Digest, "bytes", v.Size)
	}
	g.mendChains(ctx, name)
	return version(name, v), added, nil
}

// keepModule stores a module. Meanwhile others may have taken the room for it: full is the report that says so.
func (g *Gateway) keepModule(ctx context.Context, name string, wasm []byte, v control.Version) (stored control.Version, added bool, full *plugins.Report, err error) {
	g.steering.Lock()
	defer g.steering.Unlock()
	if full, err = g.noRoom(ctx, wasm); full != nil || err != nil {
		return stored, false, full, err
	}
	stored, added, err = g.store.Plugins.Add(ctx, name, wasm, v)
	return stored, added, nil, err
}

// DeletePlugin removes one version of a plugin, or all with digest "", unless a stream uses it.
func (g *Gateway) DeletePlugin(ctx context.Context, name, digest string) error {
	g.steering.Lock()
	defer g.steering.Unlock()
	if used := g.users(name, digest); len(used) > 0 {
		return event.Problemf(event.PluginInUse, "plugin %s is active in %s; deactivate it there first", name, strings.Join(used, ", "))
	}
	p, err := g.store.Plugins.Read(ctx, name)
	switch {
	case err != nil:
	case digest == "":
		err = g.store.Plugins.Remove(ctx, name)
	default:
		err = g.store.Plugins.RemoveVersion(ctx, name, digest)
	}
	if err != nil {
		return pluginProblem(name, err)
	}
	for _, v := range p.Versions {
		if digest == "" || v.Digest == digest {
			g.forget(ctx, v.Digest)
			g.host.ForgetLogs(name, v.Digest)
		}
	}
	return nil
}

// forget removes the compiled form of a module that no plugin has any more. A failure costs space only.
func (g *Gateway) forget(ctx context.Context, digest string) {
	_, err := g.store.Plugins.Module(ctx, digest)
	if errors.Is(err, control.ErrNotFound) {
		err = g.host.Forget(digest)
	}
	if err != nil {
		g.log.Warn("the compiled form of a deleted plugin stays", "digest", digest, "error", err)
	}
}

// users returns the streams in which a plugin (in that version; any with "") is active.
func (g *Gateway) users(name, digest string) (all []string) {
	streams := *g.streams.Load()
	for _, stream := range slices.Sorted(maps.Keys(streams)) {
		if slices.ContainsFunc(streams[stream].chain.Load().activations, func(a activation) bool {
			return a.Plugin == name && (digest == "" || a.Digest == digest || a.leansOn(digest))
		}) {
			all = append(all, stream)
		}
	}
	return all
}

// uses returns how a plugin is used, by stream.
func (g *Gateway) uses(name string) (all []admin.Use) {
	streams := *g.streams.Load()
	for _, stream := range slices.Sorted(maps.Keys(streams)) {
		for _, a := range streams[stream].chain.Load().shown() {
			if a.Plugin == name {
				all = append(all, admin.Use{Stream: stream, Digest: a.Digest, Stage: a.Stage, Percent: a.Percent, Suspended: a.Suspended, Comparison: a.Comparison})
			}
		}
	}
	return all
}
