package partitioner

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// full reports whether the long runs are wanted (make bench-partitioner).
func full() bool { return os.Getenv("HEADGATE_PARTITIONER") != "" }

func TestHotKeyIsSplitWithinHalfASecond(t *testing.T) {
	var took []time.Duration
	for n := range 20 {
		w := warm(t, BySource, 16)
		name := fmt.Sprint("hot ", n)
		share := float64(n%10) / 10 // where in the tick it begins
		w.keys[name] = 4 * bigT * (1 - share)
		start := w.now + time.Duration(share*float64(tick))
		for !w.isSplit(name) {
			w.tick()
			w.keys[name] = 4 * bigT
			if w.now-start > 2*time.Second {
				t.Fatalf("not split after 2 s")
			}
		}
		took = append(took, w.now-start)
	}
	slices.Sort(took)
	if p50, p99 := took[len(took)/2], took[len(took)-1]; p50 > 450*time.Millisecond || p99 > 600*time.Millisecond {
		t.Errorf("p50 %v, p99 %v", p50, p99)
	}
}

func TestK08StrictKeyIsNeverSplitAndGetsItsOwnPartition(t *testing.T) {
	w := warm(t, Strict, 8)
	w.keys["hot"] = 1.5 * target
	w.run(5 * time.Minute)
	if w.counts[SplitKey] != 0 {
		t.Fatalf("split: %v", w.log)
	}
	hi, lo := w.hash("hot")
	at := w.table.Lookup(hi, lo, 0).Partition
	if n := w.table.Counts()[at]; n > 3 {
		t.Errorf("the hot key shares its partition with %d slots", n-1)
	}
}

func TestK08FanOutStaysWithinItsBound(t *testing.T) {
	for _, o := range []Ordering{BySource, Unordered} {
		for _, bound := range []int{2, 3, 5} {
			w := newWorld(t, Settings{Ordering: o, Target: target, MaxFanout: bound}, 16)
			w.rest, w.keys["hot"] = 10*target, 20*target
			w.run(20 * time.Second)
			hi, lo := w.hash("hot")
			s := w.table.splits.find(hi, lo)
			if s == nil || len(s.children) > bound {
				t.Errorf("%v, bound %d: %+v", o, bound, s)
			}
		}
	}
}

// One key is everything: it gets all partitions, or as many as a power of two allows.
func TestOneKeyIsEverything(t *testing.T) {
	for o, want := range map[Ordering]int{Unordered: 12, BySource: 8} {
		w := newWorld(t, Settings{Ordering: o}, 12)
		w.keys["all"] = 100 << 20
		w.run(5 * time.Second)
		hi, lo := w.hash("all")
		if s := w.table.splits.find(hi, lo); s == nil || len(s.children) != want {
			t.Errorf("%v: %+v", o, s)
		}
	}
}

// A key that is a little one of a quiet stream is nobody's trouble.
func TestQuietStreamIsLeftAlone(t *testing.T) {
	w := newWorld(t, Settings{Ordering: Unordered}, 16)
	w.rest, w.keys["half of it"] = 20_000, 20_000
	w.run(time.Minute)
	if w.table.Version() != 1 {
		t.Errorf("%v", w.log)
	}
}

func TestK20KeyIsMergedWhenItHasBeenSmallForLong(t *testing.T) {
	w := warm(t, BySource, 16)
	w.keys["hot"] = 4 * bigT
	w.run(2 * time.Second)
	if !w.isSplit("hot") {
		t.Fatal("not split")
	}
	w.keys["hot"] = 0.05 * bigT
	split := w.now
	for w.isSplit("hot") && w.now-split < 10*time.Minute {
		w.tick()
	}
	if d := w.now - split; d < hold-2*time.Second || d > 3*time.Minute {
		t.Errorf("merged after %v", d)
	}
	hi, lo := w.hash("hot")
	if at := w.table.Lookup(hi, lo, 0); at.Child != -1 || at.Epoch < 2 {
		t.Errorf("after the merge: %+v", at)
	}
	w.keys["hot"] = 4 * bigT
	w.run(2 * time.Second)
	if s := w.table.Splits(); len(s) != 1 || s[0].Hold != 2*hold {
		t.Errorf("split again: %+v", s)
	}
}

func TestOscillationMakesFewTransitions(t *testing.T) {
	hour := 10 * time.Minute
	if full() {
		hour = time.Hour
	}
	for _, c := range []struct {
		low, high float64
		period    time.Duration
		most      int     // transitions
		over      float64 // seconds over the threshold while it is whole
	}{
		{0.8, 1.2, 2 * time.Second, 2, math.Inf(1)}, // the queue absorbs it
		{0.8, 1.2, 10 * time.Second, 2, 10},
		{0.8, 1.2, time.Minute, 2, 10},
		{0.1, 3, 2 * time.Second, 13, 10},
		{0.1, 3, 20 * time.Second, 13, 10},
		{0.1, 3, time.Minute, 13, 10},
		{0.1, 3, 5 * time.Minute, 13, 10},
		{0.1, 3, 20 * time.Minute, 13, 10},
	} {
		t.Run(fmt.Sprintf("%v-%v T in %v", c.low, c.high, c.period), func(t *testing.T) {
			w := warm(t, BySource, 4)
			w.noise = rand.New(rand.NewPCG(1, 2))
			over := 0.0
			for end := w.now + hour; w.now < end; {
				w.keys["wave"] = bigT * c.low
				if w.now/(c.period/2)%2 == 0 {
					w.keys["wave"] = bigT * c.high
				}
				if w.tick(); !w.isSplit("wave") && w.keys["wave"] > 1.05*bigT {
					over += tick.Seconds()
				}
			}
			n := w.counts[SplitKey] + w.counts[MergeKey]
			t.Logf("%d transitions, %.1f s over, %d grows, %d moves", n, over, w.counts[GrowKey], w.counts[MoveSlot])
			if n > c.most || over > c.over {
				t.Errorf("%d transitions, %.1f s over:\n%s", n, over, strings.Join(w.log, "\n"))
			}
		})
	}
}

func TestStationaryLoadMovesNothing(t *testing.T) {
	w := newWorld(t, Settings{Ordering: BySource}, 8)
	w.noise = rand.New(rand.NewPCG(3, 4))
	w.rest = 20 << 20
	for n := range 200 {
		w.keys[fmt.Sprint("key ", n)] = (20 << 20) / float64(n+1) / 6
	}
	w.run(2 * time.Minute)
	before := w.table.Version()
	w.run(10 * time.Minute)
	if w.table.Version() != before {
		t.Errorf("the table went from version %d to %d:\n%s", before, w.table.Version(), strings.Join(w.log, "\n"))
	}
	if worst := w.imbalance(); worst > 1.05 {
		t.Errorf("the fullest partition is at %.3f of its share", worst)
	}
}

// imbalance is that of the true load.
func (w *world) imbalance() float64 {
	load := make([]float64, len(w.table.partitions))
	for _, s := range w.table.slots {
		load[s.owner] += w.rest / float64(len(w.table.slots))
	}
	total := w.rest
	for name, r := range w.keys {
		total += r
		hi, lo := w.hash(name)
		if s := w.table.splits.find(hi, lo); s != nil {
			for _, c := range s.children {
				load[c.owner] += r / float64(len(s.children))
			}
		} else {
			load[w.table.Lookup(hi, lo, 0).Partition] += r
		}
	}
	return slices.Max(load) * float64(len(load)) / total
}

// Many warm keys on one partition, none of them hot: slots move away, nothing is split.
func TestWarmKeysOnOnePartitionMoveApart(t *testing.T) {
	w := warm(t, BySource, 8)
	for n := 0; len(w.keys) < 30; n++ {
		name := fmt.Sprint("warm ", n)
		if hi, lo := w.hash(name); w.table.Lookup(hi, lo, 0).Partition == 3 {
			w.keys[name] = 0.3 * bigT
		}
	}
	w.run(3 * time.Minute)
	if w.counts[SplitKey] != 0 || w.counts[MoveSlot] == 0 || w.imbalance() > 1.06 {
		t.Errorf("imbalance %.3f, %v", w.imbalance(), w.counts)
	}
}

// A table that was made before its keys were known is put right at once, with four times the budget and no more; a planner that
// comes later, or a load that does, has the usual one.
func TestColdStartMayMoveMore(t *testing.T) {
	moves := func(warm time.Duration) int {
		w := newWorld(t, Settings{Ordering: BySource, Target: target}, 16)
		w.rest = 0.7 * target * 16
		w.run(warm)
		for n := 0; len(w.keys) < 60; n++ {
			name := fmt.Sprint("warm ", n)
			if hi, lo := w.hash(name); w.table.Lookup(hi, lo, 0).Partition < 4 {
				w.keys[name] = 0.4 * bigT
			}
		}
		w.run(1500 * time.Millisecond)
		return w.counts[MoveSlot]
	}
	usual := budgetLoad * (0.7*16 + 60*0.4*tau) / (0.4 * tau) // so many of the warm keys are the budget
	used, made := float64(moves(3*time.Second)), float64(moves(0))
	if used > usual+1 || made <= usual+1 || made > firstCredit*usual+1 {
		t.Errorf("of a table in use %v slots moved, of a new one %v: the budget is %.1f", used, made, usual)
	}
}

func TestBudgetOfMovesHoldsInAnyTenSeconds(t *testing.T) {
	w := warm(t, Unordered, 16)
	for n := 0; len(w.keys) < 60; n++ {
		name := fmt.Sprint("warm ", n)
		if hi, lo := w.hash(name); w.table.Lookup(hi, lo, 0).Partition < 4 {
			w.keys[name] = 0.4 * bigT
		}
	}
	var at []time.Duration
	for range 1200 {
		for _, c := range w.tick().Changes {
			if c.Kind == MoveSlot {
				at = append(at, w.now)
			}
		}
		if w.now%(50*time.Second) == 0 { // another one plans from here on
			w.planner = NewPlanner(w.planner.s)
		}
	}
	most := int(2*budgetSlots*float64(w.table.Slots())) + 1 // a full bucket and what comes in meanwhile
	for i := range at {
		if j := i + most; j < len(at) && at[j]-at[i] <= 10*time.Second {
			t.Fatalf("%d slots moved in %v", most+1, at[j]-at[i])
		}
	}
	if len(at) == 0 {
		t.Error("nothing moved")
	}
}
