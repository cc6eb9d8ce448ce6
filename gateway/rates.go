package gateway

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/gateway/config"
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
			Help: "Buckets of rates that were forgotten before they were full, because there were too many: of keys, callers or limits of heavy keys."}, []string{"of"}),
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
func newCallers(cfg *config.Config, m rateMetrics) ingest.Rates {
	c := &callers{usual: cfg.Rates.Caller.Limit(), own: map[string]*rate.Limit{}}
	limited := c.usual != nil
	for id, own := range cfg.Rates.Callers {
		c.own[id] = own.Limit()
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
