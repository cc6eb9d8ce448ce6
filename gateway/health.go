package gateway

import (
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/event"
)

// health remembers since when each dependency is in its state.
type health struct {
	mu    sync.Mutex // guards the rest
	now   func() time.Time
	known map[string]admin.Dependency
}

// set notes a dependency's state: fault is empty when it works. A state that is new began at since, or now when since is
// zero.
func (h *health) set(name, fault string, since time.Time) admin.Dependency {
	h.mu.Lock()
	defer h.mu.Unlock()
	d, ok := h.known[name]
	if !ok || d.OK != (fault == "") {
		if since.IsZero() {
			since = h.now()
		}
		d = admin.Dependency{Name: name, OK: fault == "", Since: since.UTC()}
	}
	d.Detail = fault
	h.known[name] = d
	return d
}

// age is how long ago t was.
func (h *health) age(t time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now().Sub(t)
}

// patience is how long a backend may take nothing before we are not ready: nodes that restart, and single failures, are
// no reason to send producers elsewhere. A full one is at once: it has been asked for a while already.
const patience = 5 * time.Second

// Dependencies says what taking events depends on. See admin.Health.
func (g *Gateway) Dependencies() []admin.Dependency {
	accepting, delivery, guests := "", "", ""
	var deliverySince time.Time
	if err := g.notAccepting(); err != nil {
		accepting = event.Detail(err)
	}
	for name, s := range *g.streams.Load() {
		if err := s.delivery.Err(); err != nil {
			delivery = "stream " + name + ": " + err.Error()
		}
		if code, since := s.forwarder.Trouble(); delivery == "" && code != "" && (code == event.BackendFull || g.health.age(since) >= patience) {
			deliverySince = since
			delivery = "stream " + name + ": " + string(code) + "; nothing is lost, lanes try again until the backend takes it"
		}
		if fault, since := s.halted(); fault != "" {
			delivery, deliverySince = fault, since
		}
		if l := s.chain.Load(); l.err != nil {
			guests = "stream " + name + ": " + l.err.Error()
		}
	}
	g.broken.Range(func(name, b any) bool {
		delivery = "stream " + name.(string) + " did not start: " + b.(*brokenStream).why(name.(string)) + "; mend the cause and start again, or delete it: `headgate stream delete " + name.(string) + "`"
		return false
	})
	stored := g.health.set("stored", "", time.Time{}) // events are taken all the same
	if stored.Detail = g.stores.damages(); stored.Detail == "" {
		stored.Detail = g.backendLosses()
	}
	steering := g.health.set("control", "", time.Time{}) // events are taken without it
	if steering.Detail = g.stores.control.server.Fault(); steering.Detail == "" {
		steering.Detail = g.stores.control.note
	}
	fault, note := g.spoolHealth()
	spooling := g.health.set("spool", fault, time.Time{})
	if fault == "" {
		spooling.Detail = note
	}
	chains := g.health.set("plugins", guests, time.Time{})
	if guests == "" {
		chains.Detail = g.pluginNotes()
	}
	return []admin.Dependency{
		g.health.set("accepting", accepting, time.Time{}), g.health.set("delivery", delivery, deliverySince), spooling, chains, stored, steering,
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
