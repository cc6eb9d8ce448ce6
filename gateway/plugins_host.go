package gateway

import (
	"runtime"
	"time"

	"github.com/headgate-io/headgate/internal/settings"
	"github.com/headgate-io/headgate/plugins"
)

func (g *Gateway) newHost() (*plugins.Host, error) {
	trust, err := g.cfg.Plugins.Trust()
	if err != nil {
		return nil, settings.At("plugins", err)
	}
	return plugins.New(plugins.Config{
		MaxMemory: int(g.cfg.Plugins.Memory), Deadline: time.Duration(g.cfg.Plugins.Deadline), Trust: trust,
		CacheDir: g.folder.File("plugin-cache"), Compiler: g.deps.Compiler, Cores: runtime.GOMAXPROCS(0),
	}, g.log, g.metrics)
}
