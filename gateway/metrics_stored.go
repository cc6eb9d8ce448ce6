package gateway

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/admin"
)

// stored returns what a stream's backend holds of it, as it was a few seconds ago; nil where that cannot be known: on HTTP nodes,
// and of a stream that was made just now.
func (s *stream) stored() *admin.Stored {
	if s.delivery.bus == nil {
		return nil
	}
	h, ok := s.delivery.bus.keeper.Held()[s.name]
	if !ok {
		return nil
	}
	return &admin.Stored{Bytes: h.Used, Limit: h.Limit}
}

// storedMetrics exports how full streams are.
type storedMetrics struct {
	g            *Gateway
	bytes, limit *prometheus.Desc
}

func newStoredMetrics(g *Gateway) *storedMetrics {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("headgate_stored_bytes"+name, help, []string{"stream"}, nil)
	}
	return &storedMetrics{g: g,
		bytes: desc("", "Bytes that the JetStream backend holds of the stream."),
		limit: desc("_limit", "Bytes that it may hold at the moment, its share of max_bytes, which grows as it fills; 0: no limit.")}
}

// Describe is for the registry.
func (m *storedMetrics) Describe(ch chan<- *prometheus.Desc) { ch <- m.bytes; ch <- m.limit }

// Collect is for the registry.
func (m *storedMetrics) Collect(ch chan<- prometheus.Metric) {
	for name, s := range *m.g.streams.Load() {
		if at := s.stored(); at != nil {
			ch <- prometheus.MustNewConstMetric(m.bytes, prometheus.GaugeValue, float64(at.Bytes), name)
			ch <- prometheus.MustNewConstMetric(m.limit, prometheus.GaugeValue, float64(at.Limit), name)
		}
	}
}
