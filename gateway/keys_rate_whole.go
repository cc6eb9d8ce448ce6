package gateway

import (
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/rate"
	"github.com/headgate-io/headgate/partitioner"
)

// demand is what a batch brings of one key.
type demand struct {
	ask  rate.Ask
	wait time.Duration // when its bucket has all of it; 0: it is taken
}

// demandSize is what a demand costs in a map, besides its key.
const demandSize = 64

// applyWhole is apply for a batch that is taken whole or not at all. Each key is asked at once for all that the batch brings
// of it: so the wait that is told is that for all of it, and what is more than a bucket holds is granted by a full one. One by
// one, such a batch would never be taken, however often and late it is sent again.
func (w *pacing) applyWhole(b *event.Batch, now time.Time) error {
	refused := 0
	if w.keys != nil {
		n, unpaid := w.keys.applyWhole(b, now)
		if unpaid != nil {
			return unpaid
		}
		refused = n
	}
	if w.limits != nil {
		for _, i := range w.limits.applyWhole(w.table, b, now) {
			refused++
			w.keys.give(&b.Events[i])
		}
	}
	if refused == 0 {
		return nil
	}
	w.refund(b)
	late := event.Problemf(event.KeyRate, "%d of %d events are of keys over their rate, see errors, and mode=strict stores all or nothing; send the request again later", refused, len(b.Events))
	late.RetryAfter = b.RetryAfter
	return late
}

// applyWhole refuses all events of the keys that are over their rate, and returns how many. It takes nothing when nobody pays
// for the demands.
func (k *keyRate) applyWhole(b *event.Batch, now time.Time) (refused int, unpaid error) {
	at, all := k.buckets.Moment(now), map[string]demand{}
	for i := range b.Events {
		e := &b.Events[i]
		if e.Verdict != event.Keep || !e.HasKey {
			continue
		}
		d, known := all[string(e.Key)]
		if !known {
			if no := b.Pay(int64(len(e.Key)) + demandSize); no != nil {
				return 0, no
			}
		}
		d.add(1, int64(len(e.Data)))
		all[string(e.Key)] = d
	}
	for key, d := range all {
		if d.wait = k.buckets.Take([]byte(key), &k.limit, d.ask, at); d.wait > 0 {
			b.RetryAfter = max(b.RetryAfter, d.wait)
			all[key] = d
		}
	}
	for i := range b.Events {
		if e := &b.Events[i]; e.Verdict == event.Keep && e.HasKey && all[string(e.Key)].wait > 0 {
			b.Reject(i, event.KeyRate, k.detail)
			refused++
		}
	}
	k.refused.Add(float64(refused))
	return refused, nil
}

// applyWhole refuses all events of limited keys of which there are too many, and returns their places.
func (k *keyLimits) applyWhole(t *partitioner.Table, b *event.Batch, now time.Time) (refused []int) {
	at, hash, all := k.buckets.Moment(now), t.Hasher(b.Class), map[*keyLimit]demand{}
	for i := range b.Events {
		if l, ask, _ := k.of(&b.Events[i], hash); l != nil {
			d := all[l]
			d.add(0, ask.Bytes)
			all[l] = d
		}
	}
	for i := range b.Events {
		l, ask, name := k.of(&b.Events[i], hash)
		if l == nil {
			continue
		}
		d := all[l]
		if d.ask.Bytes > 0 { // the first of its key
			d = demand{wait: k.buckets.Take(name[:], &l.rate, d.ask, at)}
			all[l], b.RetryAfter = d, max(b.RetryAfter, d.wait)
		}
		if d.wait > 0 {
			b.Reject(i, event.KeyRate, l.detail)
			l.refused.Add(ask.Bytes)
			refused = append(refused, i)
		}
	}
	k.refused.Add(float64(len(refused)))
	return refused
}

func (d *demand) add(events, bytes int64) {
	d.ask.Events += events
	d.ask.Bytes += bytes
}
