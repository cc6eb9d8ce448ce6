package plugins

import (
	"maps"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics shows the bills to Prometheus.
type metrics struct {
	bills                                              bills
	calls, seconds, waits, events, failures            *prometheus.Desc
	memory, replacements, droppedLines, guestsCounters *prometheus.Desc
	compared, differences                              *prometheus.Desc
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("headgate_plugin_"+name, help, append([]string{"plugin", "digest", "stage"}, labels...), nil)
	}
	m := &metrics{
		bills:          bills{all: map[version]*bill{}},
		calls:          desc("calls_total", "Calls of the guest, one a batch of at most 256 events."),
		seconds:        desc("seconds_total", "Time spent in calls of the guest."),
		waits:          desc("wait_seconds_total", "Time that calls which compute for long waited for others that do."),
		events:         desc("events_total", "Events by what the plugin did with them.", "verdict"),
		failures:       desc("failures_total", "Events on which the plugin failed, by kind.", "kind"),
		memory:         desc("memory_bytes", "Largest memory that an instance of the plugin ever had."),
		replacements:   desc("replacements_total", "Instances made in place of one that trapped or had nearly all the memory it may have."),
		droppedLines:   desc("log_lines_dropped_total", "Log lines of the guest over its rate."),
		compared:       desc("compared_events_total", "Events of which a copy was to go to another version beside, for comparison, by outcome.", "outcome"),
		differences:    desc("differences_total", "Events of which a version that is tried made something else than the active one.", "what"),
		guestsCounters: desc("counter", "Counters that the guest keeps itself.", "id"),
	}
	return m, reg.Register(m)
}

// Describe is part of prometheus.Collector.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.calls, m.seconds, m.waits, m.events, m.failures, m.memory, m.replacements, m.droppedLines, m.guestsCounters, m.compared, m.differences} {
		to <- d
	}
}

// Collect is part of prometheus.Collector.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	m.bills.mu.Lock()
	all := maps.Clone(m.bills.all)
	m.bills.mu.Unlock()
	for v, b := range all {
		m.collect(to, v, b)
	}
}

func (m *metrics) collect(to chan<- prometheus.Metric, v version, b *bill) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, kind, value, append([]string{v.plugin, v.digest, v.stage}, labels...)...)
	}
	send(m.calls, prometheus.CounterValue, float64(b.calls.Load()))
	send(m.seconds, prometheus.CounterValue, time.Duration(b.nanoseconds.Load()).Seconds())
	send(m.waits, prometheus.CounterValue, time.Duration(b.waited.Load()).Seconds())
	send(m.replacements, prometheus.CounterValue, float64(b.replacements.Load()))
	send(m.droppedLines, prometheus.CounterValue, float64(b.droppedLines.Load()))
	send(m.memory, prometheus.GaugeValue, float64(b.memory.Load()))
	send(m.events, prometheus.CounterValue, float64(b.kept.Load()), "kept")
	send(m.events, prometheus.CounterValue, float64(b.replaced.Load()), "replaced")
	send(m.events, prometheus.CounterValue, float64(b.dropped.Load()), "filtered")
	send(m.events, prometheus.CounterValue, float64(b.rejected.Load()), "rejected")
	send(m.events, prometheus.CounterValue, float64(b.failed.Load()), "failed")
	if c := &b.compared; v.stage != stageNames[Active] && v.stage != stageNames[reference] {
		send(m.compared, prometheus.CounterValue, float64(c.compared.Load()-c.failed.Load()), "compared")
		send(m.compared, prometheus.CounterValue, float64(c.failed.Load()), "failed")
		send(m.compared, prometheus.CounterValue, float64(c.skipped.Load()), "skipped")
		send(m.differences, prometheus.CounterValue, float64(c.verdicts.Load()), "verdict")
		send(m.differences, prometheus.CounterValue, float64(c.keys.Load()), "key")
		send(m.differences, prometheus.CounterValue, float64(c.values.Load()), "value")
	}
	for kind, name := range failureNames {
		send(m.failures, prometheus.CounterValue, float64(b.failures[kind].Load()), name)
	}
	for id := range b.counters {
		if n := b.counters[id].Load(); n != 0 {
			send(m.guestsCounters, prometheus.GaugeValue, float64(n), strconv.Itoa(id))
		}
	}
}
