package gateway

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/plugins/builtin"
)

// idMetrics are the ids of all streams that have some.
type idMetrics struct {
	g           *Gateway
	ids, window *prometheus.Desc
}

func newIDMetrics(g *Gateway) *idMetrics {
	return &idMetrics{
		g:   g,
		ids: prometheus.NewDesc("headgate_ids", "Ids of events: pending ones are on their way, remembered ones are safe.", []string{"stream", "state"}, nil),
		window: prometheus.NewDesc("headgate_ids_window_seconds",
			"How far back every id of the stream is remembered; less than configured after a start, and when ids of a caller had to make room: then for that one.", []string{"stream"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (m *idMetrics) Describe(out chan<- *prometheus.Desc) { out <- m.ids; out <- m.window }

// Collect implements prometheus.Collector.
func (m *idMetrics) Collect(out chan<- prometheus.Metric) {
	for name, s := range *m.g.streams.Load() {
		state := s.ids.State(time.Now())
		if state.Pending+state.Finished == 0 && s.current.Load().id == (builtin.ID{}) {
			continue
		}
		out <- prometheus.MustNewConstMetric(m.ids, prometheus.GaugeValue, float64(state.Pending), name, "pending")
		out <- prometheus.MustNewConstMetric(m.ids, prometheus.GaugeValue, float64(state.Finished), name, "remembered")
		out <- prometheus.MustNewConstMetric(m.window, prometheus.GaugeValue, state.Reach.Seconds(), name)
	}
}
