package partitioner

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Under any load that stays as it is, a planner comes to rest: it changes nothing for longer than it freezes after rounds that
// helped nothing, within an hour, and by then has not made more changes than each slot twice and each key a few times.
func TestPlannerComesToRest(t *testing.T) {
	loads := 0
	most := 25
	if full() {
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
		tables, ok := w.rests()
		if !ok {
			rt.Fatalf("it does not rest: %v", w.log[max(0, len(w.log)-8):])
		}
		all := 0
		for _, n := range w.counts {
			all += n
		}
		if bound := 2*w.table.Slots() + 8*len(w.keys) + 16; all > bound {
			rt.Fatalf("%d changes in %d tables, at most %d should be needed: %v", all, tables, bound, w.counts)
		}
	})
}

// rests runs until nothing has changed for longer than a planner freezes after rounds that helped nothing, within an hour; tables is
// how often something changed before.
func (w *world) rests() (tables int, ok bool) {
	const quiet, within = freeze + time.Minute, time.Hour
	for began, rest := w.now, time.Duration(0); rest < quiet; rest += tick {
		if w.now-began > within {
			return tables, false
		}
		if len(w.tick().Changes) > 0 {
			tables, rest = tables+1, 0
		}
	}
	return tables, true
}

// Slots with next to nothing in them use up the budget of slots and hardly any of that of load: a round that waits for it goes on,
// and is not taken for one that helps nothing. Two keys are split, and one partition has a part of each, so that all else has to
// leave it.
func TestRoundOfSmallSlotsWaitsForItsBudget(t *testing.T) {
	w := newWorld(t, Settings{Ordering: BySource, Target: 1 << 20}, 3)
	w.rest, w.keys["key 1"], w.keys["key 2"] = 1e5, 250e3, 3e6
	if _, ok := w.rests(); !ok {
		t.Fatalf("it does not rest: %v", w.log[max(0, len(w.log)-8):])
	}
	if i := slices.IndexFunc(w.log, isNoProgress); i >= 0 || w.counts[SplitKey] != 2 || w.counts[MoveSlot] < 50 {
		t.Errorf("%v, note %d: %v", w.counts, i, w.log[max(0, len(w.log)-8):])
	}
}

// A partition that gave slots away, for the sake of a heavy one that it has, is not taken for a new one that has to get its share of
// them, although the mean, of which a key that can't be divided has most, is far more than it has.
func TestPartitionWithAHeavySlotIsNotNew(t *testing.T) {
	w := newWorld(t, Settings{Ordering: Strict, Target: 1 << 20, Min: 1, Max: 4}, 3)
	w.rest, w.keys["key 1"], w.keys["key 2"] = 1e6, 3e6, 366e3
	if _, ok := w.rests(); !ok || w.counts[MoveSlot] > w.table.Slots() {
		t.Errorf("%v: %v", w.counts, w.log[max(0, len(w.log)-8):])
	}
}

func isNoProgress(line string) bool { return strings.Contains(line, " note: no_progress: 3 rounds ") }

// A partition that has a tenth too much whatever leaves it: after three rounds nothing moves for five minutes.
func TestRoundsThatHelpNothingAreStopped(t *testing.T) {
	w := newWorld(t, Settings{Ordering: BySource, Target: 1 << 20}, 4)
	w.extra = func(l *Load) {
		counts := w.table.Counts()
		for i, s := range w.table.slots {
			if l.Slots[i] = 1e6 / float64(counts[s.owner]); s.owner == 0 {
				l.Slots[i] *= 1.1
			}
		}
	}
	for !slices.ContainsFunc(w.log, isNoProgress) {
		if w.tick(); w.now > 1_000_000*time.Second+30*time.Minute {
			t.Fatalf("it goes on: %v", w.log[max(0, len(w.log)-8):])
		}
	}
	moved := w.counts[MoveSlot]
	if w.run(freeze - time.Second); moved == 0 || w.counts[MoveSlot] != moved {
		t.Errorf("%d slots moved before, %d after", moved, w.counts[MoveSlot]-moved)
	}
	if w.run(time.Minute); w.counts[MoveSlot] == moved {
		t.Error("nothing moves any more")
	}
}
