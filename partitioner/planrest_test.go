package partitioner

import (
	"fmt"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Under any load that stays as it is, a planner comes to rest: it changes nothing for longer than it freezes after rounds that
// helped nothing, within an hour, and by then has not made more changes than each slot twice and each key a few times.
func TestPlannerComesToRest(t *testing.T) {
	const quiet, within = freeze + time.Minute, time.Hour
	loads := 0
	most := 25
	if os.Getenv("HEADGATE_PARTITIONER") != "" {
		most = 100
	}
	rapid.Check(t, func(rt *rapid.T) {
		if loads++; loads > most {
			return // each is thousands of ticks
		}
		s := Settings{
			Ordering: rapid.SampledFrom([]Ordering{Strict, BySource, Unordered}).Draw(rt, "ordering"),
			Target:   rapid.SampledFrom([]float64{0, 1 << 20}).Draw(rt, "target"),
		}
		partitions := rapid.IntRange(2, 4).Draw(rt, "partitions")
		if s.Target > 0 && rapid.Bool().Draw(rt, "elastic") {
			s.Min, s.Max = 1, 4
		}
		w := newWorld(t, s, partitions)
		w.sketch = NewSketch(64)
		w.rest = rapid.SampledFrom([]float64{0, 1e5, 1e6, 3e6, 1e7}).Draw(rt, "rest")
		for n := range rapid.IntRange(0, 8).Draw(rt, "keys") {
			w.keys[fmt.Sprint("key ", n)] = rapid.Float64Range(0, 3e6).Draw(rt, "rate")
		}
		began, changes, rest := w.now, 0, time.Duration(0)
		for rest < quiet {
			if len(w.tick().Changes) > 0 {
				changes, rest = changes+1, 0
			}
			if rest += tick; w.now-began > within {
				rt.Fatalf("it does not rest: %v", w.log[max(0, len(w.log)-8):])
			}
		}
		all := 0
		for _, n := range w.counts {
			all += n
		}
		if bound := 2*w.table.Slots() + 8*len(w.keys) + 16; all > bound {
			rt.Fatalf("%d changes in %d tables, at most %d should be needed: %v", all, changes, bound, w.counts)
		}
	})
}
