package config

import (
	"errors"
	"time"

	"github.com/headgate-io/headgate/internal/settings"
	"github.com/headgate-io/headgate/partitioner"
)

// Planner is what a definition wants of the planner.
func (c *Stream) Planner() partitioner.Settings {
	ordering, _ := partitioner.ParseOrdering(c.Ordering)
	return partitioner.Settings{Ordering: ordering, MaxFanout: c.Adaptive.MaxPartitions, Hold: time.Duration(c.Adaptive.Hold),
		Min: c.Partitions.Min, Max: c.Partitions.Max, Target: float64(c.Partitions.Target)}
}

// Adaptive bounds what a stream's table does by itself. It is part of the definition, which all gateways share.
type Adaptive struct {
	Off           bool              `json:"off"`            // the table stays as it is
	MaxPartitions int               `json:"max_partitions"` // most partitions of one key; 0: all
	Hold          settings.Duration `json:"hold"`           // how long a key stays split at least
}

const (
	leastHold   = settings.Duration(100 * time.Millisecond)
	longestHold = settings.Duration(30 * time.Minute)
)

func (a *Adaptive) problem() error {
	return errors.Join(
		settings.At("max_partitions", mustBe(a.MaxPartitions == 0 || a.MaxPartitions >= 2 && a.MaxPartitions <= maxPartitions,
			"must be 2 to %d, or left out for all, got %d", maxPartitions, a.MaxPartitions)),
		settings.At("hold", mustBe(a.Hold >= leastHold && a.Hold <= longestHold, "must be %s to %s, got %s",
			time.Duration(leastHold), time.Duration(longestHold), time.Duration(a.Hold))))
}

// looser tells that a stream may change from one ordering to another while it takes events: it promises no more than it did.
func looser(from, to string) bool {
	a, _ := partitioner.ParseOrdering(from)
	b, _ := partitioner.ParseOrdering(to)
	return b >= a
}
