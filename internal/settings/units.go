package settings

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Bytes is a size; in text a number with an optional unit: 512KiB, 10GiB, 4096.
type Bytes int64

var units = []struct {
	suffix string
	factor int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}}

// UnmarshalText reads a size.
func (b *Bytes) UnmarshalText(text []byte) error {
	s, factor := string(text), int64(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(s, u.suffix); ok {
			s, factor = strings.TrimSpace(rest), u.factor
			break
		}
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || !(n >= 0 && n*float64(factor) < 1<<62) { // NaN is neither
		return fmt.Errorf("%q is not a size; write for example 512KiB or 10GiB", text)
	}
	if n > 0 && n*float64(factor) < 1 || factor == 1 && n != math.Trunc(n) {
		return fmt.Errorf("%q is not a whole number of bytes; write for example 4096, 512KiB or 1.5MiB", text)
	}
	*b = Bytes(n * float64(factor))
	return nil
}

// Example shows how a size is written.
func (Bytes) Example() string { return "512KiB" }

// MarshalText writes the size in the largest binary unit that is exact.
func (b Bytes) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// String is MarshalText as a string.
func (b Bytes) String() string {
	for i := 3; i >= 0; i-- {
		if u := units[i]; b != 0 && int64(b)%u.factor == 0 {
			return strconv.FormatInt(int64(b)/u.factor, 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// Duration is a time span; in text as Go writes it, or with days in front: 10ms, 5m, 7d, 1d12h.
type Duration time.Duration

// UnmarshalText reads a duration.
func (d *Duration) UnmarshalText(text []byte) error {
	rest := string(text)
	var whole time.Duration
	if days, after, ok := strings.Cut(rest, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16) // 65,535 days are within what a duration can be
		if err != nil {
			return notDuration(text)
		}
		whole, rest = time.Duration(n)*24*time.Hour, after
		if rest == "" {
			rest = "0s"
		}
	}
	v, err := time.ParseDuration(rest)
	if err == nil && v < 0 && whole == 0 {
		return fmt.Errorf("%q is less than nothing; write for example 10ms, 30s, 5m or 7d", text)
	}
	if err != nil || v < 0 || v+whole < 0 {
		return notDuration(text)
	}
	*d = Duration(v + whole)
	return nil
}

// Example shows how a duration is written.
func (Duration) Example() string { return "30s" }

func notDuration(text []byte) error {
	return fmt.Errorf("%q is not a duration; write for example 10ms, 30s, 5m or 7d", text)
}

// MarshalText writes the duration as Go writes it.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }
