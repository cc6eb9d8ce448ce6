package gateway

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// tableMetrics exports what is known of the routing tables. No key is a label.
type tableMetrics struct{ g *Gateway }

// streamDesc is of a figure that each stream has.
func streamDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, []string{"stream"}, nil)
}

var (
	tableVersion  = streamDesc("headgate_table_version", "Version of the routing table in force.")
	maxOverMean   = streamDesc("headgate_partition_max_over_mean", "Rate of the fullest partition in relation to the mean.")
	topShare      = streamDesc("headgate_top_key_share", "Share of the heaviest key in all that is counted, at least.")
	splitKeys     = streamDesc("headgate_split_keys", "Keys that are split now.")
	parkedEvents  = streamDesc("headgate_parked_events", "Events that wait for the end of a change of the table.")
	parkedSeconds = streamDesc("headgate_parked_seconds", "How long events waited for the end of a change of the table.")
	partitions    = streamDesc("headgate_partitions", "Partitions that take part now.")
	limitedKeys   = streamDesc("headgate_limited_keys", "Keys that bring more than one partition takes and are refused the rest.")
	addedTotal    = streamDesc("headgate_partitions_added_total", "Partitions that began to take part, since the load grew.")
	drainedTotal  = streamDesc("headgate_partitions_drained_total", "Partitions that got nothing more, since the load fell.")
	splitsTotal   = streamDesc("headgate_splits_total", "Keys that were split.")
	growsTotal    = streamDesc("headgate_grows_total", "Split keys that got more partitions.")
	mergesTotal   = streamDesc("headgate_merges_total", "Split keys that were merged again.")
	movesTotal    = streamDesc("headgate_moves_total", "Slots, and parts of split keys, that went to another partition.")
	abandonedDesc = streamDesc("headgate_abandoned_changes_total", "Changes that were abandoned, because what they leave was not confirmed in time.")
	fencesTotal   = streamDesc("headgate_fences_total", "Times that events were held back for changes of the table.")
	fenceSeconds  = streamDesc("headgate_fence_seconds_total", "How long that took.")
)

// Describe is for the registry.
func (m tableMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{tableVersion, maxOverMean, topShare, splitKeys, parkedEvents, splitsTotal, growsTotal, mergesTotal,
		movesTotal, abandonedDesc, fencesTotal, fenceSeconds, partitions, limitedKeys, addedTotal, drainedTotal, parkedSeconds} {
		ch <- d
	}
}

// Collect is for the registry.
func (m tableMetrics) Collect(ch chan<- prometheus.Metric) {
	for name, s := range *m.g.streams.Load() {
		a := s.adaptive
		if a == nil {
			continue
		}
		f, t, c := a.figures.Load(), s.partitioner.Table(), &a.counts
		for d, v := range map[*prometheus.Desc]float64{
			tableVersion: float64(t.Version()), maxOverMean: f.maxOverMean(), topShare: f.topShare(),
			splitKeys: float64(len(t.Splits())), parkedEvents: float64(a.parked.Load()),
			partitions: float64(t.Active()), limitedKeys: float64(s.limits.Load().count()),
		} {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, name)
		}
		for d, v := range map[*prometheus.Desc]float64{
			splitsTotal: float64(c.splits.Load()), growsTotal: float64(c.grows.Load()), mergesTotal: float64(c.merges.Load()),
			movesTotal: float64(c.moves.Load()), abandonedDesc: float64(c.abandoned.Load()), fencesTotal: float64(c.fences.Load()),
			fenceSeconds: time.Duration(c.fenceTime.Load()).Seconds(),
			addedTotal:   float64(c.added.Load()), drainedTotal: float64(c.drained.Load()),
		} {
			ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, name)
		}
		count, seconds, buckets := a.stalls.read()
		ch <- prometheus.MustNewConstHistogram(parkedSeconds, count, seconds, buckets, name)
	}
}
