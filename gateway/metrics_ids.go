package gateway

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/internal/journal"
	"github.com/headgate-io/headgate/plugins/builtin"
)

// idMetrics are the ids of all streams that have some.
type idMetrics struct {
	g             *Gateway
	ids, window   *prometheus.Desc
	bytes, failed *prometheus.Desc
}

func newIDMetrics(g *Gateway) *idMetrics {
	return &idMetrics{
		g:   g,
		ids: prometheus.NewDesc("headgate_ids", "Ids of events: pending ones are on their way, remembered ones are safe.", []string{"stream", "state"}, nil),
		window: prometheus.NewDesc("headgate_ids_window_seconds",
			"How far back every id of the stream is remembered; less than configured when the log is new or was damaged, and when ids of a caller had to make room: then for that one.", []string{"stream"}, nil),
		bytes:  prometheus.NewDesc("headgate_window_bytes", "Bytes of the logs that keep the windows of ids and of idempotency keys over a restart.", []string{"of"}, nil),
		failed: prometheus.NewDesc("headgate_window_failed_writes_total", "Writes to these logs that failed; what they had is written again.", []string{"of"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (m *idMetrics) Describe(out chan<- *prometheus.Desc) {
	out <- m.ids
	out <- m.window
	out <- m.bytes
	out <- m.failed
}

// Collect implements prometheus.Collector.
func (m *idMetrics) Collect(out chan<- prometheus.Metric) {
	var ids, keys journal.Stats
	if m.g.keyLog != nil {
		keys = m.g.keyLog.Stats()
	}
	for name, s := range *m.g.streams.Load() {
		if s.idLog != nil {
			one := s.idLog.Stats()
			ids.Bytes, ids.Failed = ids.Bytes+one.Bytes, ids.Failed+one.Failed
		}
		state := s.ids.State(time.Now())
		if state.Pending+state.Finished == 0 && s.current.Load().id == (builtin.ID{}) {
			continue
		}
		out <- prometheus.MustNewConstMetric(m.ids, prometheus.GaugeValue, float64(state.Pending), name, "pending")
		out <- prometheus.MustNewConstMetric(m.ids, prometheus.GaugeValue, float64(state.Finished), name, "remembered")
		out <- prometheus.MustNewConstMetric(m.window, prometheus.GaugeValue, state.Reach.Seconds(), name)
	}
	for of, st := range map[string]journal.Stats{"ids": ids, "keys": keys} {
		out <- prometheus.MustNewConstMetric(m.bytes, prometheus.GaugeValue, float64(st.Bytes), of)
		out <- prometheus.MustNewConstMetric(m.failed, prometheus.CounterValue, float64(st.Failed), of)
	}
}
