package gateway

import (
	"cmp"
	"runtime"

	"github.com/headgate-io/headgate/gateway/config"
)

// fitsMemory says at a start what memory is needed, and refuses when there is not so much.
func (g *Gateway) fitsMemory() error {
	needs := g.cfg.MemoryNeeds(runtime.GOMAXPROCS(0))
	limit, of := config.MemoryLimit()
	if err := needs.Against(limit, of, g.cfg.Memory); err != nil {
		return err
	}
	g.log.Info("memory", "needs", config.InMiB(needs.Surely), "at_most", config.InMiB(needs.AtMost), "limit", config.InMiB(limit), "limit_of", cmp.Or(of, "nobody"))
	return nil
}
