package gateway

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/jsonscan"
	"github.com/headgate-io/headgate/plugins/builtin"
)

// addFilter lets the stream's requests go through its filters.
func (d *definition) addFilter() (err error) {
	s := d.settings
	if d.filter, err = builtin.NewFilter(d.config.Filters, s.Watch); err != nil || d.filter == nil {
		return err
	}
	s.Sieve, s.Watch, s.Headers = d.filter, d.filter.Watch(), append(s.Headers, d.filter.Headers()...)
	return nil
}

// eventWatch are the pointers whose values an event keeps: those that filters alone look at are no longer needed.
func (d *definition) eventWatch() []jsonscan.Pointer {
	return d.settings.Watch[:min(len(d.settings.Watch), event.MaxFields)]
}

// filterMetrics are what the filters of all streams have done.
type filterMetrics struct {
	g      *Gateway
	events *prometheus.Desc
}

func newFilterMetrics(g *Gateway) *filterMetrics {
	return &filterMetrics{g, prometheus.NewDesc("headgate_filter_events_total", "Events that a filter of a stream's definition dropped or refused.",
		[]string{"stream", "filter", "verdict"}, nil)}
}

// Describe implements prometheus.Collector.
func (m *filterMetrics) Describe(out chan<- *prometheus.Desc) { out <- m.events }

// Collect implements prometheus.Collector.
func (m *filterMetrics) Collect(out chan<- prometheus.Metric) {
	for name, s := range *m.g.streams.Load() {
		for _, t := range s.current.Load().filter.Tallies() {
			verdict := event.Filtered
			if t.Reject {
				verdict = event.Rejected
			}
			out <- prometheus.MustNewConstMetric(m.events, prometheus.CounterValue, float64(t.Events), name, t.Name, verdict.String())
		}
	}
}
