package gateway

import (
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/headgate-io/headgate/admin"
)

// health remembers since when each dependency is in its state.
type health struct {
	mu    sync.Mutex
	known map[string]admin.Dependency
}

// set notes a dependency's state: fault is empty when it works.
func (h *health) set(name, fault string) admin.Dependency {
	h.mu.Lock()
	defer h.mu.Unlock()
	d, ok := h.known[name]
	if !ok || d.OK != (fault == "") {
		d = admin.Dependency{Name: name, OK: fault == "", Since: time.Now().UTC()}
	}
	d.Detail = fault
	if h.known == nil {
		h.known = map[string]admin.Dependency{}
	}
	h.known[name] = d
	return d
}

// Dependencies says what taking events depends on. See admin.Health.
func (g *Gateway) Dependencies() []admin.Dependency {
	accepting, delivery, guests := "", "", ""
	if !g.accepting.Load() {
		accepting = "starting or draining"
	}
	for name, s := range *g.streams.Load() {
		if err := s.delivery.Err(); err != nil {
			delivery = "stream " + name + ": " + err.Error()
		}
		if code := s.forwarder.Trouble(); delivery == "" && code != "" {
			delivery = "stream " + name + ": " + string(code) + "; nothing is lost, lanes try again until the backend takes it"
		}
		if l := s.chain.Load(); l.err != nil {
			guests = "stream " + name + ": " + l.err.Error()
		}
	}
	g.broken.Range(func(name, b any) bool {
		delivery = "stream " + name.(string) + " did not start: " + b.(*brokenStream).err.Error()
		return false
	})
	stored := g.health.set("stored", "") // events are taken all the same
	stored.Detail = g.stores.damages()
	steering := g.health.set("control", "") // events are taken without it
	steering.Detail = g.stores.control.note
	return []admin.Dependency{
		g.health.set("accepting", accepting), g.health.set("delivery", delivery), g.health.set("plugins", guests), stored, steering,
	}
}

func newRegistry(b admin.Build) *prometheus.Registry {
	reg := prometheus.NewRegistry()
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "headgate_build_info", Help: "1, with what is running.",
		ConstLabels: prometheus.Labels{"version": b.Version, "go": runtime.Version()},
	})
	info.Set(1)
	reg.MustRegister(info, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return reg
}
