package gateway

import (
	"fmt"
	"maps"
	"math"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/rate"
	"github.com/headgate-io/headgate/internal/settings"
	"github.com/headgate-io/headgate/partitioner"
)

// keyLimits are the limits of keys that bring more than one partition takes and cannot be divided. It is replaced whole.
type keyLimits struct {
	all     map[[2]uint64]*keyLimit
	buckets *rate.Table
	refused prometheus.Counter
}

// keyLimit is that of one key.
type keyLimit struct {
	partitioner.Limit
	rate    rate.Limit
	detail  string       // of a refused event
	refused atomic.Int64 // weight since the last tick
}

// limitBurst is how long a key that was silent may save up: less than a backlog that is worth a limit.
const limitBurst = time.Second

// someLimits is how many buckets there are, so that a set of them hardly forgets one.
const someLimits = 4096

// limit takes over what the planner has decided about the limits of keys.
func (a *adaptive) limit(t *partitioner.Table, changes []partitioner.Limit) {
	if len(changes) == 0 {
		return
	}
	old := a.stream.limits.Load()
	next := &keyLimits{all: map[[2]uint64]*keyLimit{}, refused: a.rates.events.WithLabelValues(a.stream.name)}
	if old != nil {
		next.buckets = old.buckets
		maps.Copy(next.all, old.all)
	} else {
		next.buckets = rate.NewTable(someLimits, time.Now(), a.rates.forgotten.WithLabelValues("limits").Inc)
	}
	for _, l := range changes {
		id := [2]uint64{l.Hi, l.Lo}
		if l.Rate == 0 {
			delete(next.all, id)
		} else {
			next.all[id] = newKeyLimit(l)
		}
		a.recordLimit(t, l)
	}
	if len(next.all) == 0 {
		next = nil
	}
	a.stream.limits.Store(next)
}

// unlimit ends all limits, since nobody looks after them any more.
func (a *adaptive) unlimit() {
	if a.stream.limits.Load() != nil {
		a.planner = partitioner.NewPlanner(a.planned)
		a.stream.limits.Store(nil)
	}
}

func newKeyLimit(l partitioner.Limit) *keyLimit {
	bytes := int64(math.Ceil(l.Rate))
	return &keyLimit{Limit: l, rate: rate.Limit{Bytes: bytes, Burst: limitBurst},
		detail: fmt.Sprintf("the key brings more than one partition takes (%s a second), and the order of its events keeps it in one; send the event again later, or use ordering: source, by which it can be divided",
			settings.Bytes(bytes))}
}

func (a *adaptive) recordLimit(t *partitioner.Table, l partitioner.Limit) {
	key := a.names.show(l.Hi, l.Lo)
	e := happening{Time: time.Now().UTC(), Stream: a.stream.name, TableVersion: t.Version(), Kind: "limit", Outcome: done, ShownKey: &key,
		Partitions: []int32{l.Partition}, Limit: l.Rate, Reason: l.Reason}
	if l.Rate == 0 {
		e.Kind = "unlimit"
	}
	a.history.add(e)
	a.log.Info("limit of a key changed", "change", l.String())
}

// count is how many keys are limited.
func (k *keyLimits) count() int {
	if k == nil {
		return 0
	}
	return len(k.all)
}

// refusals fills in what was refused since the last tick.
func (k *keyLimits) refusals(load *partitioner.Load) {
	if k == nil {
		return
	}
	load.Refused = map[[2]uint64]float64{}
	for id, l := range k.all {
		if n := l.refused.Swap(0); n > 0 {
			load.Refused[id] = float64(n) / load.Elapsed.Seconds()
		}
	}
}

// of returns the limit of an event's key, and its place in the buckets.
func (k *keyLimits) of(e *event.Event, hash func([]byte) (hi, lo uint64)) (l *keyLimit, ask rate.Ask, name [16]byte) {
	if e.Verdict != event.Keep || !e.HasKey {
		return nil, ask, name
	}
	hi, lo := hash(e.Key)
	if l = k.all[[2]uint64{hi, lo}]; l == nil {
		return nil, ask, name
	}
	for i := range 8 {
		name[i], name[8+i] = byte(hi>>(8*i)), byte(lo>>(8*i))
	}
	return l, rate.Ask{Bytes: int64(len(e.Data) + partitioner.EventCost)}, name
}

// apply refuses the events of limited keys that are too many, and once one is refused the later ones of its key, so that none
// overtakes. It returns the details of those, by their places.
func (k *keyLimits) apply(t *partitioner.Table, b *event.Batch, now time.Time) (details map[int32]string) {
	at, hash := k.buckets.Moment(now), t.Hasher(b.Class)
	for i := range b.Events {
		l, ask, name := k.of(&b.Events[i], hash)
		if l == nil {
			continue
		}
		if wait := k.buckets.Take(name[:], &l.rate, ask, at); wait > 0 {
			b.Reject(i, event.KeyRate, l.detail)
			b.RetryAfter = max(b.RetryAfter, wait)
			l.refused.Add(ask.Bytes)
			if details == nil {
				details = map[int32]string{}
			}
			details[int32(i)] = l.detail
		}
	}
	k.refused.Add(float64(len(details)))
	return details
}

// refund gives the keys of b back what apply took for events of which nothing is stored after all.
func (k *keyLimits) refund(t *partitioner.Table, b *event.Batch) {
	hash := t.Hasher(b.Class)
	for i := range b.Events {
		if l, ask, name := k.of(&b.Events[i], hash); l != nil {
			k.buckets.Give(name[:], &l.rate, ask)
		}
	}
}
