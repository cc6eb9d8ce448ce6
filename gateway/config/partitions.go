package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/settings"
	"github.com/headgate-io/headgate/partitioner"
)

// Partitions is the number of partitions; its short form is a number. With a target the number of those that are active follows
// the load, between Min and Max.
type Partitions struct {
	Min    int       `json:"min,omitempty"`
	Max    int       `json:"max"`
	Target PerSecond `json:"target,omitempty"` // what a partition is meant to take; 0: no such thing
}

// UnmarshalText reads the short form `partitions: 16`.
func (p *Partitions) UnmarshalText(text []byte) error {
	n, err := strconv.Atoi(string(text))
	p.Max = n
	return mustBe(err == nil, "%q is not a number; write 16, or {min: 4, max: 64, target: 5MiB/s}", text)
}

// MarshalJSON writes the short form, as a number, where there is nothing else to say.
func (p Partitions) MarshalJSON() ([]byte, error) {
	if !p.Elastic() && p.Target == 0 {
		return strconv.AppendInt(nil, int64(p.Max), 10), nil
	}
	type long Partitions
	return json.Marshal(long(p))
}

// String is MarshalJSON for people.
func (p Partitions) String() string {
	if !p.Elastic() {
		return strconv.Itoa(p.Max)
	}
	return fmt.Sprintf("%d to %d", p.Min, p.Max)
}

// Elastic tells whether the number of active partitions can change.
func (p *Partitions) Elastic() bool { return p.Min != 0 && p.Min != p.Max }

func (p *Partitions) setDefaults() {
	or(&p.Max, 16)
	if p.Target > 0 {
		or(&p.Min, 1)
	}
	or(&p.Min, p.Max)
}

// leastTarget is a load that is worth a partition.
const leastTarget = 16 << 10

func (p *Partitions) problem() error {
	if !p.Elastic() && p.Target == 0 { // the short form
		return mustBe(p.Max >= 1 && p.Max <= maxPartitions, "must be 1 to %d, got %d", maxPartitions, p.Max)
	}
	return errors.Join(
		settings.At("max", mustBe(p.Max >= 1 && p.Max <= maxPartitions, "must be 1 to %d, got %d", maxPartitions, p.Max)),
		settings.At("min", mustBe(p.Min >= 1 && p.Min <= p.Max || p.Max > maxPartitions || p.Max < 1, "must be 1 to max, which is %d, got %d", p.Max, p.Min)),
		settings.At("target", mustBe(p.Target == 0 || p.Target >= leastTarget, "must be at least 16KiB/s, got %v", p.Target)),
		settings.At("target", mustBe(!p.Elastic() || p.Min > p.Max || p.Target > 0, "is needed for a number that follows the load, from %d to %d: what a partition is meant to take, like 5MiB/s", p.Min, p.Max)))
}

// elasticProblem returns what else in a definition contradicts a number that follows the load.
func (s *Stream) elasticProblem() error {
	p := &s.Partitions
	if !p.Elastic() && p.Target == 0 {
		return nil
	}
	err := mustBe(s.Hash != partitioner.Murmur2.String(), "the number is fixed with hash: murmur2, since nothing moves; write partitions: %d, or use siphash", p.Max)
	if p.Elastic() {
		err = errors.Join(err,
			mustBe(!s.Adaptive.Off, "the number cannot follow the load while adaptive.off leaves the table as it is; write partitions: %d, or leave adaptive.off out", p.Max),
			mustBe(s.Ordering == "none" || s.Codec != "gzip" && s.Codec != "none",
				"the number cannot follow the load with codec: %s, whose frames cannot say what comes before them; use another codec, or ordering: none", s.Codec))
	}
	return err
}

// changeable refuses what a running stream cannot change: it has a lane for each partition that there may be.
func (p *Partitions) changeable(old *Partitions) error {
	if p.Max == old.Max {
		return nil
	}
	return event.Problemf(event.PartitionsFixed, "partitions: the stream was made for %d at most and cannot have %d; min and target can be changed", old.Max, p.Max)
}

// PerSecond is a number of bytes a second; in text a size, with or without /s.
type PerSecond settings.Bytes

// UnmarshalText reads 5MiB/s.
func (b *PerSecond) UnmarshalText(text []byte) error {
	return (*settings.Bytes)(b).UnmarshalText([]byte(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(string(text)), "/s"))))
}

// MarshalText is the inverse.
func (b PerSecond) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// String is MarshalText as a string.
func (b PerSecond) String() string { return settings.Bytes(b).String() + "/s" }
