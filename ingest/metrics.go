package ingest

import (
	"fmt"
	"maps"
	"strconv"
	"sync"
	"sync/atomic"
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

	posts   [600]atomic.Pointer[counter]              // of requests: POST to a stream's events, by status
	mu      sync.Mutex                                // makes changes of streams one at a time
	streams atomic.Pointer[map[string]*streamMetrics] // by name, those that Gate.Open found
}

// counter is a prometheus.Counter that an atomic.Pointer can hold.
type counter struct{ prometheus.Counter }

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
	m.streams.Store(&map[string]*streamMetrics{})
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
	if r == routeOther || verb == other || status >= len(m.posts) {
		m.seconds.Observe(took.Seconds())
		m.requests.WithLabelValues(r, verb, strconv.Itoa(status)).Inc()
		return
	}
	m.posted(status, took)
}

// posted counts one POST to a stream's events; the status is one that there is.
func (m *metrics) posted(status int, took time.Duration) {
	m.seconds.Observe(took.Seconds())
	known := m.posts[status].Load()
	if known == nil {
		known = &counter{m.requests.WithLabelValues(routeEvents, "POST", strconv.Itoa(status))}
		m.posts[status].Store(known)
	}
	known.Inc()
}

// streamMetrics are the counters of one stream.
type streamMetrics struct {
	name           string
	wire, inflated prometheus.Counter
	results        [event.DeadLettered + 1]prometheus.Counter // by verdict
	rejected       *prometheus.CounterVec                     // by code
}

// stream returns the counters of a stream that exists, or with an empty name those of all others.
func (m *metrics) stream(name string) *streamMetrics {
	if name == "" {
		name = other
	}
	if s, ok := (*m.streams.Load())[name]; ok {
		return s
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, ok := (*m.streams.Load())[name]; ok {
		return s
	}
	all := maps.Clone(*m.streams.Load())
	all[name] = m.make(name)
	m.streams.Store(&all)
	return all[name]
}

// known returns the counters of a stream that has some already, else nil.
func (m *metrics) known(name []byte) *streamMetrics { return (*m.streams.Load())[string(name)] }

func (m *metrics) make(name string) *streamMetrics {
	s := &streamMetrics{
		name:     name,
		wire:     m.bytes.WithLabelValues(name, "wire"),
		inflated: m.bytes.WithLabelValues(name, "inflated"),
		rejected: m.rejected.MustCurryWith(prometheus.Labels{"stream": name}),
	}
	for v := range s.results {
		s.results[v] = m.events.WithLabelValues(name, event.Verdict(v).String())
	}
	return s
}

func (s *streamMetrics) count(c event.Counts) {
	for v, n := range [...]int{event.Keep: c.Accepted, event.Filtered: c.Filtered, event.Rejected: c.Rejected,
		event.Duplicate: c.Duplicates, event.DeadLettered: c.DeadLettered} {
		if n > 0 {
			s.results[v].Add(float64(n))
		}
	}
}

// batch counts what became of all events of b.
func (s *streamMetrics) batch(b *event.Batch) event.Counts {
	n := b.Counts()
	s.count(n)
	s.errors(b.Errors, n.Rejected)
	return n
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
