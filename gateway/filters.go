package gateway

import (
	"errors"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/ingest/cloudevents"
	"github.com/headgate-io/headgate/internal/jsonscan"
	"github.com/headgate-io/headgate/internal/settings"
	"github.com/headgate-io/headgate/plugins/builtin"
)

// filterProblem returns what is wrong with a stream's filters.
func filterProblem(rules []builtin.Rule) error {
	if _, err := builtin.NewFilter(rules, nil); err != nil {
		if pe, ok := errors.AsType[*builtin.PathError](err); ok {
			return settings.At(pe.Path, pe.Err)
		}
		return err
	}
	for i := range rules {
		for _, c := range []*builtin.Condition{rules[i].Drop, rules[i].Keep, rules[i].Reject} {
			if err := conditionProblem(c); err != nil {
				return settings.At(strconv.Itoa(i), err)
			}
		}
	}
	return nil
}

// conditionProblem refuses names that no header and no attribute can have, and headers with credentials.
func conditionProblem(c *builtin.Condition) error {
	if c == nil {
		return nil
	}
	if err := headerProblem(c.Header); err != nil {
		return err
	}
	switch strings.ToLower(c.Header) {
	case "authorization", "proxy-authorization", "cookie":
		return errors.New("a filter must not look at a header with credentials")
	}
	if c.CE != "" && !cloudevents.ValidName(c.CE) {
		return mustBe(false, "%q is not a CloudEvents attribute: they consist of a-z and 0-9", c.CE)
	}
	all := append(append([]builtin.Condition{}, c.All...), c.Any...)
	for i := range all {
		if err := conditionProblem(&all[i]); err != nil {
			return err
		}
	}
	return conditionProblem(c.Not)
}

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
