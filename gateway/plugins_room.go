package gateway

import (
	"context"
	"fmt"
	"strings"

	"github.com/headgate-io/headgate/control"
	"github.com/headgate-io/headgate/internal/settings"
	"github.com/headgate-io/headgate/plugins"
)

// moduleBytes is how much of the control store modules may have: definitions and tables need some of it.
const moduleBytes = controlBytes / 4 * 3

// mostNamed is how many versions that could be deleted are named.
const mostNamed = 5

// noRoom returns the report on a module that does not fit beside those there are, nil when it does. One that is stored
// already takes no more room.
func (g *Gateway) noRoom(ctx context.Context, wasm []byte) (*plugins.Report, error) {
	stored, err := g.store.Plugins.List(ctx)
	if err != nil {
		return nil, asProblem("list plugins", err)
	}
	sizes := map[string]int{}
	for _, p := range stored {
		for _, v := range p.Versions {
			sizes[v.Digest] = v.Size
		}
	}
	digest := plugins.Digest(wasm)
	if _, there := sizes[digest]; there {
		return nil, nil
	}
	bytes := 0
	for _, size := range sizes {
		bytes += size
	}
	var what string
	switch {
	case len(sizes) >= g.cfg.Plugins.MaxModules:
		what = fmt.Sprintf("or raise plugins.max_modules, which is %d", g.cfg.Plugins.MaxModules)
	case bytes+len(wasm) > moduleBytes:
		what = fmt.Sprintf("modules may have %s together", settings.Bytes(moduleBytes))
	default:
		return nil, nil
	}
	return plugins.Refused(wasm, "room", fmt.Sprintf("%d modules of %d bytes are stored, and this one has %d bytes: delete versions that no stream uses (%s), %s",
		len(sizes), bytes, len(wasm), g.unused(stored), what)), nil
}

// unused names versions that no stream uses.
func (g *Gateway) unused(stored []control.Plugin) string {
	var all []string
	for _, p := range stored {
		for _, v := range p.Versions {
			if len(g.users(p.Name, v.Digest)) == 0 {
				all = append(all, fmt.Sprintf("headgate plugin delete %s --digest %s", p.Name, strings.TrimPrefix(v.Digest, "sha256:")[:12]))
			}
		}
	}
	switch n := len(all); {
	case n == 0:
		return "there is none: deactivate one first"
	case n > mostNamed:
		return fmt.Sprintf("%s; %d more", strings.Join(all[:mostNamed], "; "), n-mostNamed)
	}
	return strings.Join(all, "; ")
}
