package partitioner

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/headgate-io/headgate/event"
)

// Heavy is what is known of one heavy key: bounds of its decayed weight.
type Heavy struct {
	Hi, Lo       uint64
	Fast         float64 // lower bound, of the short memory
	Lower, Upper float64 // of the long memory
	Class        event.Class
}

// Report is what one sketch, or several together, know of the heavy keys.
type Report struct {
	Keys  []Heavy // the heaviest first
	Floor float64 // the most that a key has which is not among Keys
	Total float64 // weight of all keys, of the long memory
}

// Report returns the keys whose upper bound is at least share of everything, after a Tick.
func (s *Sketch) Report(share float64) Report {
	r := Report{Floor: s.Floor(), Total: s.total}
	least := share * s.total
	for n := range s.sets {
		b := &s.sets[n]
		for i, count := range b.count {
			switch {
			case count == 0 || math.IsInf(count, 1):
			case count < least:
				r.Floor = max(r.Floor, count)
			default:
				c := &b.of[i]
				r.Keys = append(r.Keys, Heavy{Hi: c.hi, Lo: c.lo, Fast: c.fast, Lower: max(0, count-c.err), Upper: count})
			}
		}
	}
	slices.SortFunc(r.Keys, heavier)
	return r
}

func heavier(a, b Heavy) int {
	return cmp.Or(cmp.Compare(b.Upper, a.Upper), cmp.Compare(a.Hi, b.Hi), cmp.Compare(a.Lo, b.Lo))
}

// MergeReports adds up what several sketches know. A key that one of them does not name may have its floor there; so the
// error stays the share of everything that it is in each, however many they are and in whatever order they are merged.
func MergeReports(all ...Report) Report {
	var sum Report
	keys := map[[2]uint64]*Heavy{}
	for _, r := range all {
		sum.Floor += r.Floor
		sum.Total += r.Total
		for _, k := range r.Keys {
			id := [2]uint64{k.Hi, k.Lo}
			if keys[id] == nil {
				keys[id] = &Heavy{Hi: k.Hi, Lo: k.Lo, Class: k.Class}
			}
			m := keys[id]
			m.Fast += k.Fast
			m.Lower += k.Lower
			m.Upper += k.Upper - r.Floor
		}
	}
	for _, k := range keys {
		k.Upper += sum.Floor
		sum.Keys = append(sum.Keys, *k)
	}
	slices.SortFunc(sum.Keys, heavier)
	return sum
}

// Rates is Report with weights per second in place of decayed weights. A sketch that is younger than its memory is long
// divides by what it has seen, though in the long one by a second at least, or by half of what it holds in the end where that is
// less: else the noise of its first ticks looks like heavy keys.
func (s *Sketch) Rates(share float64) Report {
	r := s.Report(share)
	whole := s.memory.Seconds() / math.Ln2
	fast, slow := 1/max(s.fastTime, 1e-3), 1/max(s.slowTime, min(1, whole/2))
	r.Floor, r.Total = r.Floor*slow, r.Total*slow
	for i := range r.Keys {
		k := &r.Keys[i]
		k.Fast, k.Lower, k.Upper = k.Fast*fast, k.Lower*slow, k.Upper*slow
	}
	return r
}

// decay is the share of a weight that is left after elapsed.
func decay(elapsed, halfLife time.Duration) float64 {
	return math.Exp2(-elapsed.Seconds() / halfLife.Seconds())
}
