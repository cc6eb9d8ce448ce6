package partitioner

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// elasticWorld is a stream of 2 to 12 partitions.
func elasticWorld(t testing.TB, o Ordering) *world {
	return newWorld(t, Settings{Ordering: o, Target: target, Min: 2, Max: 12}, 2)
}

// What has no key is load like any other.
func TestPartitionsFollowWhatHasNoKey(t *testing.T) {
	w := elasticWorld(t, BySource)
	w.extra = func(l *Load) { l.Keyless = 5.5 * target }
	w.run(20 * time.Second)
	if n := w.table.Active(); n != 6 {
		t.Errorf("%d partitions for 5.5 times the target: %v", n, w.log)
	}
}

// A load that swings about what one more partition needs changes nothing more after the first time.
func TestLoadAboutAThresholdDoesNotFlap(t *testing.T) {
	w := elasticWorld(t, BySource)
	for n := range 60 {
		w.rest = 4 * target
		if n%2 == 0 {
			w.rest = 2.5 * target
		}
		w.run(20 * time.Second)
	}
	if added, drained := w.counts[AddPartition]+w.counts[ActivatePartition], w.counts[DrainPartition]; added > 3 || drained > 1 {
		t.Errorf("%d partitions were added and %d drained in 20 minutes", added, drained)
	}
}

// A key on all partitions is merged when one of them drains, and split again over those that are left.
func TestKeyOnAllPartitionsLetsOneOfThemDrain(t *testing.T) {
	for _, o := range []Ordering{BySource, Unordered} {
		w := elasticWorld(t, o)
		w.keys["hot"], w.rest = 7*target, target
		w.run(time.Minute)
		if w.table.Active() < 8 || !w.isSplit("hot") {
			t.Fatalf("%v: %v", o, w.table)
		}
		w.keys["hot"], w.rest = 1.5*target, 0.1*target
		w.run(10 * time.Minute)
		used := 0
		for _, u := range w.table.Used() {
			if u {
				used++
			}
		}
		if n := w.table.Active(); used != n || n > 4 {
			t.Errorf("%v: %d partitions are used, %d active: %v", o, used, n, w.table)
		}
	}
}

// Whoever plans next neither gives up partitions at once, before producers are back, nor leaves a half filled one like that.
func TestElasticSurvivesAChangeOfPlanner(t *testing.T) {
	w := elasticWorld(t, BySource)
	w.rest = 8 * target
	for n := 0; w.table.Active() < 8; n++ {
		if w.run(time.Second); n > 60 {
			t.Fatal(w.table)
		}
	}
	w.run(2 * time.Second) // some are filled, others are not
	w.planner = NewPlanner(w.planner.s)
	w.rest = 0
	w.run(20 * time.Second)
	if n := w.table.Active(); n != 8 {
		t.Errorf("%d partitions while nobody was back", n)
	}
	w.rest = 8 * target
	w.run(2 * time.Minute)
	if w.imbalance() > 1.1 || w.table.Active() != 8 {
		t.Errorf("%v, imbalance %.2f", w.table, w.imbalance())
	}
}

// The bounds of a definition that has changed are kept, with load or without.
func TestBoundsOfPartitionsAreKept(t *testing.T) {
	for _, rest := range []float64{0, 100 * target} {
		for _, s := range []Settings{{Min: 5, Max: 5}, {Min: 5, Max: 6, Target: target}, {Min: 1, Max: 2, Target: target}} {
			t.Run(fmt.Sprint(s.Min, " ", s.Max, " ", rest), func(t *testing.T) {
				w := newWorld(t, Settings{Max: 12}, 3)
				w.planner, w.rest = NewPlanner(s), rest
				w.run(5 * time.Minute)
				if n := w.table.Active(); n < s.Min || n > s.Max || !w.planner.Settled(w.table) && rest == 0 {
					t.Errorf("%v with %+v", w.table, s)
				}
			})
		}
	}
}

// A partition that was filled is not filled again, once moves have taken slots from it since they are heavy.
func TestPartitionIsNewOnlyUntilItHasItsShare(t *testing.T) {
	w := elasticWorld(t, BySource)
	w.rest = 6 * target
	w.run(2 * time.Minute)
	last := w.planner.size.joining - 1
	if last < 0 {
		last = int32(w.table.Active() - 1)
	}
	var heavy []int
	for id, s := range w.table.slots {
		if int32(s.owner) == last && len(heavy) < 12 {
			heavy = append(heavy, id)
		}
	}
	w.extra = func(l *Load) {
		for _, id := range heavy {
			l.Slots[id] += 0.05 * target
		}
	}
	from := len(w.log)
	w.run(10 * time.Minute)
	moves := w.counts[MoveSlot]
	w.run(10 * time.Minute)
	for _, line := range w.log[from:] {
		if strings.Contains(line, "is new") {
			t.Fatalf("partition %d is filled again: %s", last, line)
		}
	}
	if n := w.counts[MoveSlot] - moves; from == len(w.log) || n > 0 {
		t.Errorf("%d moves in all, %d in the last 10 minutes of a load that stays", w.counts[MoveSlot], n)
	}
}

// Where no key is asked for, none is named.
func TestBacklogOfSlotsNamesNoKey(t *testing.T) {
	w := warm(t, BySource, 4)
	w.extra = func(l *Load) {
		l.Backlog = []time.Duration{2 * backlogLimit, 0, 0, 0}
		for id, s := range w.table.slots {
			if s.owner == 0 {
				l.Slots[id] *= 1.5
			}
		}
	}
	w.run(time.Minute)
	if lines := strings.Join(w.log, "\n"); !strings.Contains(lines, "confirmed within 1s, what it has stays") || strings.Contains(lines, "key 0000") {
		t.Error(lines)
	}
}
