package forward

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the figures of all forwarders of a process. Those about lanes are read when they are asked for, each
// lane's at one moment: per stream, headgate_accepted_events_total, like
// headgate_partition_events_total summed over partitions, is headgate_lane_events summed over states plus what is delivered,
// refused and abandoned.
type Metrics struct {
	errors    *prometheus.CounterVec
	frameSize prometheus.Histogram

	mu         sync.Mutex
	forwarders map[string]*Forwarder // by stream
}

// NewMetrics returns metrics that are exported by reg.
func NewMetrics(reg prometheus.Registerer) (*Metrics, error) {
	m := newMetrics()
	for _, c := range []prometheus.Collector{m.errors, m.frameSize, m} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("register forward metrics: %w", err)
		}
	}
	return m, nil
}

func newMetrics() *Metrics {
	return &Metrics{
		forwarders: map[string]*Forwarder{},
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "headgate_delivery_errors_total",
			Help: "Calls of a backend that failed; refused: for good, the others are tried again."}, []string{"backend", "reason"}),
		frameSize: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "headgate_frame_size_bytes",
			Help: "Size of sealed frames, compressed.", Buckets: prometheus.ExponentialBuckets(256, 4, 8)}),
	}
}

// Forget ends the series of a deleted stream.
func (m *Metrics) Forget(stream string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.forwarders, stream)
}

func (m *Metrics) watch(f *Forwarder) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forwarders[f.cfg.Stream] = f
}

// desc makes the description of a metric with a stream label and others; read only.
func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, append([]string{"stream"}, labels...), nil)
}

var (
	laneBytes       = desc("headgate_lane_bytes", "Bytes of the memory budget held by events in the lanes.")
	laneEvents      = desc("headgate_lane_events", "Events in the lanes: in open frames, in sealed ones, in flight, and in the spool alone (spooled).", "state")
	inflight        = desc("headgate_delivery_inflight", "Runs sent and not confirmed yet.")
	delivered       = desc("headgate_delivered_events_total", "Events that the backend confirmed.")
	refusedEvents   = desc("headgate_refused_events_total", "Events that the backend refused for good; they are in the dead letter, or their requests were told.")
	abandonedEvents = desc("headgate_abandoned_events_total", "Events given up on by a hard stop.")
	acceptedEvents  = desc("headgate_accepted_events_total", "Events that entered the lanes: at any moment those in the lanes, delivered, refused, abandoned and lost.")
	lostEvents      = desc("headgate_lost_events_total", "Events that were damaged on the disk; their frames are in the quarantine of the spool.")
	backendLost     = desc("headgate_backend_lost_events_total", "Events that the backend had confirmed and does not have any more, and the spool neither, at most.")
	sentAgain       = desc("headgate_backend_resent_events_total", "Events that the backend had confirmed and lost, and that were sent again.")
	partitionEvents = desc("headgate_partition_events_total", "Events that entered the lane of the partition.", "partition")
)

// Describe is for the registry.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{laneBytes, laneEvents, inflight, delivered, refusedEvents, abandonedEvents, acceptedEvents, lostEvents, backendLost, sentAgain, partitionEvents, haltedPartitions} {
		ch <- d
	}
}

// Collect is for the registry.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	all := slices.Collect(maps.Values(m.forwarders))
	m.mu.Unlock()
	for _, f := range all {
		f.collect(ch)
	}
}

func (f *Forwarder) collect(ch chan<- prometheus.Metric) {
	var sum laneCounts
	runs := 0
	for p, l := range f.lanes {
		c := l.snapshot()
		sum.add(&c)
		if c.inflight > 0 {
			runs++
		}
		ch <- prometheus.MustNewConstMetric(partitionEvents, prometheus.CounterValue, float64(c.accepted), f.cfg.Stream, strconv.Itoa(p))
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, append([]string{f.cfg.Stream}, labels...)...)
	}
	counter := func(d *prometheus.Desc, v uint64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), f.cfg.Stream)
	}
	gauge(laneBytes, float64(sum.bytes))
	gauge(laneEvents, float64(sum.open), "open")
	gauge(laneEvents, float64(sum.sealed), "sealed")
	gauge(laneEvents, float64(sum.inflight), "inflight")
	gauge(laneEvents, float64(sum.spooled), "spooled")
	gauge(inflight, float64(runs))
	counter(acceptedEvents, sum.accepted)
	counter(delivered, sum.delivered)
	counter(refusedEvents, sum.refused)
	counter(abandonedEvents, sum.abandoned)
	counter(lostEvents, sum.lost)
	counter(backendLost, sum.backendLost)
	counter(sentAgain, sum.sentAgain)
	f.collectHalted(ch)
}
