package gateway

import "github.com/prometheus/client_golang/prometheus"

// storeMetrics exports how the embedded servers are.
type storeMetrics struct{ g *Gateway }

var (
	storeFault = prometheus.NewDesc("headgate_store_fault",
		"1 while an embedded store (events, control) takes nothing, since its disk did not.", []string{"store"}, nil)
	storeReopened = prometheus.NewDesc("headgate_store_reopened_total",
		"Times that an embedded store was opened again by itself, because it took nothing.", []string{"store"}, nil)
)

// Describe is for the registry.
func (m storeMetrics) Describe(ch chan<- *prometheus.Desc) { ch <- storeFault; ch <- storeReopened }

// Collect is for the registry.
func (m storeMetrics) Collect(ch chan<- prometheus.Metric) {
	if m.g.stores == nil || m.g.stores.events == nil {
		return
	}
	for i, name := range []string{"events", "control"} {
		s, fault := m.g.stores.servers()[i], 0.0
		if s.Fault() != "" {
			fault = 1
		}
		ch <- prometheus.MustNewConstMetric(storeFault, prometheus.GaugeValue, fault, name)
		ch <- prometheus.MustNewConstMetric(storeReopened, prometheus.CounterValue, float64(s.Reopened()), name)
	}
}
