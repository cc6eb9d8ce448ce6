package gateway

import (
	"cmp"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/gateway/config"
	"github.com/headgate-io/headgate/internal/rate"
	"github.com/headgate-io/headgate/internal/window"
	"github.com/headgate-io/headgate/partitioner"
)

// keyRate is the rate of each key of a stream.
type keyRate struct {
	limit   rate.Limit
	buckets *rate.Table
	detail  string // of a refused event
	refused prometheus.Counter
}

// newKeyRate returns the rate of a stream's keys, nil when there is none.
func newKeyRate(stream string, cfg config.StreamRate, m rateMetrics) *keyRate {
	limit := cfg.Key.Limit()
	if limit == nil {
		return nil
	}
	return &keyRate{
		limit:   *limit,
		buckets: rate.NewTable(cmp.Or(cfg.Keys, config.DefaultKeys), time.Now(), m.forgotten.WithLabelValues("keys").Inc),
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

// pacing is what keys may bring: what the stream's definition says, and what partitions take. Either may be nil.
type pacing struct {
	keys   *keyRate
	limits *keyLimits
	table  *partitioner.Table
}

// apply refuses the events whose keys are over their rate. It comes behind the look at the ids, so that a repetition, which
// is not stored, takes nothing of the rate; the ids that were claimed for what is refused are free again.
func (w *pacing) apply(b *event.Batch, p *passage) error {
	if b.Strict {
		return w.applyWhole(b, time.Now())
	}
	known, refused := b.Counts().Rejected, 0
	var details map[int32]string
	if w.keys != nil {
		refused = w.keys.apply(b, time.Now())
	}
	if w.limits != nil {
		details = w.limits.apply(w.table, b, time.Now())
		for i := range details { // only what is stored spends a rate
			w.keys.give(&b.Events[i])
		}
	}
	if refused+len(details) == 0 || p.claim == nil {
		return nil
	}
	p.slow = make([]window.Fate, 0, b.Counts().Rejected-known)
	for i := range b.Events {
		if b.Events[i].Verdict == event.Rejected {
			detail := details[int32(i)]
			if detail == "" && w.keys != nil {
				detail = w.keys.detail
			}
			p.slow = append(p.slow, window.Fate{Place: int32(i), Verdict: event.Rejected, Code: event.KeyRate, Detail: detail})
		}
	}
	p.claim.Refuse(p.slow)
	return nil
}

// refund gives back what apply took for events of which nothing is stored after all.
func (w *pacing) refund(b *event.Batch) {
	if w.keys != nil {
		w.keys.refund(b)
	}
	if w.limits != nil {
		w.limits.refund(w.table, b)
	}
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
			k.give(e)
		}
	}
}

// give gives the key of an event back what apply took for it; a stream without rate takes nothing.
func (k *keyRate) give(e *event.Event) {
	if k != nil {
		k.buckets.Give(e.Key, &k.limit, rate.Ask{Events: 1, Bytes: int64(len(e.Data))})
	}
}
