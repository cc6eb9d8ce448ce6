package config

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/headgate-io/headgate/internal/rate"
	"github.com/headgate-io/headgate/internal/settings"
)

// Rates is what callers may send, to all streams together.
type Rates struct {
	Caller  Rate            `json:"caller"`  // each caller: a token, or else an address
	Callers map[string]Rate `json:"callers"` // by the id of a token: instead of Caller
}

// Rate is a rate; zero values mean no limit.
type Rate struct {
	Events float64           `json:"events,omitempty"` // a second; 0.5 is one each 2 s
	Bytes  settings.Bytes    `json:"bytes,omitempty"`  // a second
	Burst  settings.Duration `json:"burst,omitempty"`  // how long one who was silent may save up; 2 s
}

// StreamRate is what a stream takes.
type StreamRate struct {
	Key  Rate `json:"key"`  // of each key
	Keys int  `json:"keys"` // of which so many can be over half of their rate at a time; 65,536
}

const (
	defaultBurst = settings.Duration(2 * time.Second)
	longestBurst = settings.Duration(time.Hour)
	lowestRate   = 0.001         // of events: one each 17 minutes
	highestRate  = 1_000_000_000 // of events and of bytes, a second: above, rounding to nanoseconds shows
	DefaultKeys  = 65_536
	mostKeys     = 16 << 20
)

// Example shows how a rate is written.
func (Rate) Example() string { return "{events: 100, burst: 2s}" }

// Limit is r for the tables of buckets, nil when it is none.
func (r *Rate) Limit() *rate.Limit {
	l := &rate.Limit{Events: r.Events, Bytes: int64(r.Bytes), Burst: time.Duration(r.Burst)}
	if !l.Any() {
		return nil
	}
	if l.Burst == 0 {
		l.Burst = time.Duration(defaultBurst)
	}
	return l
}

func (r *Rate) problem() error {
	return errors.Join(
		settings.At("events", mustBe(r.Events == 0 || r.Events >= lowestRate && r.Events <= highestRate, "must be %v to %d a second, or 0 for no limit, got %v", lowestRate, highestRate, r.Events)),
		settings.At("bytes", mustBe(r.Bytes <= highestRate, "must be at most %s a second, got %s", settings.Bytes(highestRate), r.Bytes)),
		settings.At("burst", mustBe(r.Burst == 0 || r.Burst >= settings.Duration(time.Millisecond) && r.Burst <= longestBurst, "must be 1ms to %s", time.Duration(longestBurst))),
		settings.At("burst", mustBe(r.Burst == 0 || r.Events != 0 || r.Bytes > 0, "there is no rate; set events or bytes")))
}

// rateProblem returns what is wrong with the rates of callers, each with its path in rates.
func (c *Config) rateProblem() error {
	all := []error{settings.At("caller", c.Rates.Caller.problem())}
	var ids []string
	if c.Auth != nil {
		for i := range c.Auth.Tokens {
			ids = append(ids, c.Auth.Tokens[i].ID)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.Rates.Callers)) {
		own := c.Rates.Callers[id]
		err := mustBe(slices.Contains(ids, id), "is the id of no token in auth.tokens; those are %q", ids)
		all = append(all, settings.At("callers."+id, errors.Join(err, own.problem())))
	}
	return errors.Join(all...)
}

func (r *StreamRate) problem() error {
	return errors.Join(settings.At("key", r.Key.problem()), settings.At("keys", mustBe(r.Keys >= 0 && r.Keys <= mostKeys, "must be at most %d, got %d", mostKeys, r.Keys)))
}
