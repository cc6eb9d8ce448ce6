package gateway

import (
	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/gateway/config"
)

// How a stream keeps its order over changes of its table.
const (
	sealing  = "seal"  // the lane that is left ends in a marker, where the backend checks that nothing old comes behind it
	draining = "drain" // all that it held was answered: the backend can't be asked, also not where the lane ended before a restart
)

// fence says which of them a stream has.
func (s *stream) fence(cfg *config.Stream) string {
	if cfg.Ordering == "none" {
		return cfg.Ordering
	}
	if _, ok := s.delivery.Backend.(forward.LaneSealer); ok {
		return sealing
	}
	return draining
}

// sayFence tells at the start what is weaker than usual.
func (a *adaptive) sayFence() {
	cfg := &a.stream.current.Load().config
	if a.stream.fence(cfg) == draining && a.mayPlan() {
		a.log.Info("order over changes of the routing table is kept in mode drain: right after a restart, frames may not name what comes before them in another partition",
			"backend", cfg.Backend)
	}
}
