package ingest

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/event"
)

// other is the label of whatever is not named in the configuration, so that clients cannot make series.
const other = "other"

// metrics count what comes in. The methods may be called concurrently.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  prometheus.Histogram
	events   *prometheus.CounterVec
	bytes    *prometheus.CounterVec
	rejected *prometheus.CounterVec

	streams sync.Map // name -> *streamMetrics; names are those that Gate.Open found
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "headgate_http_requests_total",
			Help: "Requests answered, by route, method and status."}, []string{"route", "method", "code"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "headgate_http_request_duration_seconds",
			Help: "From the end of a request's header to its answer.", Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16)}),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "headgate_ingest_events_total",
			Help: "Events by what became of them, of requests that were not refused as a whole."}, []string{"stream", "result"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "headgate_ingest_bytes_total",
			Help: "Bytes of bodies: wire as sent, inflated without content coding."}, []string{"stream", "kind"}),
		rejected: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "headgate_ingest_rejected_total",
			Help: "Requests and single events refused, by code; code other: events beyond the first 100 of a request."}, []string{"stream", "code"}),
	}
	if reg == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.requests, m.seconds, m.events, m.bytes, m.rejected} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("register ingest metrics: %w", err)
		}
	}
	return m, nil
}

// answered counts one request of the given target and method.
func (m *metrics) answered(target, method []byte, status int, took time.Duration) {
	r, verb := routeOther, other
	if _, _, ok := route(target); ok {
		r = routeEvents
	}
	if string(method) == "POST" {
		verb = "POST"
	}
	m.requests.WithLabelValues(r, verb, strconv.Itoa(status)).Inc()
	m.seconds.Observe(took.Seconds())
}

// streamMetrics are the counters of one stream.
type streamMetrics struct {
	wire, inflated prometheus.Counter
	results        [event.DeadLettered + 1]prometheus.Counter // by verdict
	rejected       *prometheus.CounterVec                     // by code
}

// stream returns the counters of a stream that exists, or with an empty name those of all others.
func (m *metrics) stream(name string) *streamMetrics {
	if name == "" {
		name = other
	}
	if s, ok := m.streams.Load(name); ok {
		return s.(*streamMetrics)
	}
	s := &streamMetrics{
		wire:     m.bytes.WithLabelValues(name, "wire"),
		inflated: m.bytes.WithLabelValues(name, "inflated"),
		rejected: m.rejected.MustCurryWith(prometheus.Labels{"stream": name}),
	}
	for v := range s.results {
		s.results[v] = m.events.WithLabelValues(name, event.Verdict(v).String())
	}
	kept, _ := m.streams.LoadOrStore(name, s)
	return kept.(*streamMetrics)
}

func (s *streamMetrics) count(c event.Counts) {
	s.results[event.Keep].Add(float64(c.Accepted))
	s.results[event.Filtered].Add(float64(c.Filtered))
	s.results[event.Rejected].Add(float64(c.Rejected))
	s.results[event.Duplicate].Add(float64(c.Duplicates))
	s.results[event.DeadLettered].Add(float64(c.DeadLettered))
}

func (s *streamMetrics) refused(code event.Code, n int) {
	s.rejected.WithLabelValues(string(code)).Add(float64(n))
}

// errors counts rejected events, of which errs are described.
func (s *streamMetrics) errors(errs []event.Error, rejected int) {
	for i := range errs {
		s.refused(errs[i].Code, 1)
	}
	if more := rejected - len(errs); more > 0 {
		s.refused(other, more)
	}
}
