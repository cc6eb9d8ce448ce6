package gateway

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/ingest"
	"github.com/headgate-io/headgate/internal/rate"
)

// rateMetrics count what rates do.
type rateMetrics struct {
	events    *prometheus.CounterVec // refused for their key, by stream
	forgotten *prometheus.CounterVec // buckets, by what they are of
}

func newRateMetrics(reg prometheus.Registerer) rateMetrics {
	m := rateMetrics{
		events: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "headgate_key_rate_events_total",
			Help: "Events refused because their key is over its rate."}, []string{"stream"}),
		forgotten: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "headgate_rate_buckets_forgotten_total",
			Help: "Buckets of rates that were forgotten before they were full, because there were too many: of keys or callers."}, []string{"of"}),
	}
	reg.MustRegister(m.events, m.forgotten)
	return m
}

// callers are the rates of who sends. Those with a token and those known by their address have tables of their own: no
// name of one can be that of another.
type callers struct {
	usual          *rate.Limit            // nil: none
	own            map[string]*rate.Limit // by id; nil: none
	ids, addresses *rate.Table
}

// someAddresses is how many addresses can be over half of their rate at a time: 2 MiB.
const someAddresses = 65_536

// newCallers returns the rates of callers, nil where there are none.
func newCallers(cfg *Config, m rateMetrics) ingest.Rates {
	c := &callers{usual: cfg.Rates.Caller.limit(), own: map[string]*rate.Limit{}}
	limited := c.usual != nil
	for id, own := range cfg.Rates.Callers {
		c.own[id] = own.limit()
		limited = limited || c.own[id] != nil
	}
	if !limited {
		return nil
	}
	forgotten := m.forgotten.WithLabelValues("callers").Inc
	if cfg.Auth != nil { // many more than there are, so that hardly a set has to forget
		c.ids = rate.NewTable(16*len(cfg.Auth.Tokens), time.Now(), forgotten)
	} else {
		c.addresses = rate.NewTable(someAddresses, time.Now(), forgotten)
	}
	return c
}

// Begin is asked before a body is read.
func (c *callers) Begin(who ingest.Caller, bytes int64, now time.Time) time.Duration {
	return c.ask(who, rate.Ask{Bytes: bytes, Room: 1}, now)
}

// Take is asked when it is known what was in a body.
func (c *callers) Take(who ingest.Caller, what ingest.Load, now time.Time) time.Duration {
	return c.ask(who, rate.Ask{Events: int64(what.Events), Bytes: what.Bytes, Again: what.Again}, now)
}

func (c *callers) ask(who ingest.Caller, ask rate.Ask, now time.Time) time.Duration {
	if len(who.ID) > 0 {
		limit, ok := c.own[string(who.ID)]
		if !ok {
			limit = c.usual
		}
		if limit == nil {
			return 0
		}
		return c.ids.Take(who.ID, limit, ask, c.ids.Moment(now))
	}
	if c.usual == nil || c.addresses == nil {
		return 0
	}
	name, n := ingest.Network(who.Addr)
	return c.addresses.Take(name[:n], c.usual, ask, c.addresses.Moment(now))
}

// keyRate is the rate of each key of a stream.
type keyRate struct {
	limit   rate.Limit
	buckets *rate.Table
	detail  string // of a refused event
	refused prometheus.Counter
}

// newKeyRate returns the rate of a stream's keys, nil when there is none.
func newKeyRate(stream string, cfg StreamRateConfig, m rateMetrics) *keyRate {
	limit := cfg.Key.limit()
	if limit == nil {
		return nil
	}
	or(&cfg.Keys, defaultKeys)
	return &keyRate{
		limit:   *limit,
		buckets: rate.NewTable(cfg.Keys, time.Now(), m.forgotten.WithLabelValues("keys").Inc),
		detail:  "the key is over its rate (" + describeRate(limit) + "); send the event again later",
		refused: m.events.WithLabelValues(stream),
	}
}

func describeRate(l *rate.Limit) string {
	switch {
	case l.Bytes == 0:
		return fmt.Sprintf("%v events a second", l.Events)
	case l.Events == 0:
		return fmt.Sprintf("%d bytes a second", l.Bytes)
	}
	return fmt.Sprintf("%v events or %d bytes a second", l.Events, l.Bytes)
}

// apply refuses the events whose key is over its rate. Once one of a batch is refused the later ones of its key are too,
// so that none overtakes. Events without a key have no rate. It returns how many are refused.
func (k *keyRate) apply(b *event.Batch, now time.Time) (refused int) {
	at := k.buckets.Moment(now)
	for i := range b.Events {
		e := &b.Events[i]
		if e.Verdict != event.Keep || !e.HasKey {
			continue
		}
		if wait := k.buckets.Take(e.Key, &k.limit, rate.Ask{Events: 1, Bytes: int64(len(e.Data))}, at); wait > 0 {
			b.Reject(i, event.KeyRate, k.detail)
			b.RetryAfter = max(b.RetryAfter, wait)
			refused++
		}
	}
	if refused > 0 {
		k.refused.Add(float64(refused))
	}
	return refused
}

// refund gives the keys of b back what apply took for events of which nothing is stored after all.
func (k *keyRate) refund(b *event.Batch) {
	for i := range b.Events {
		if e := &b.Events[i]; e.Verdict == event.Keep && e.HasKey {
			k.buckets.Give(e.Key, &k.limit, rate.Ask{Events: 1, Bytes: int64(len(e.Data))})
		}
	}
}
