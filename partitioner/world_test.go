package partitioner

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// world drives a planner with a load that a test makes: named keys with a rate each, and the rest spread evenly.
type world struct {
	t       testing.TB
	table   *Table
	planner *Planner
	sketch  *Sketch
	now     time.Duration
	keys    map[string]float64 // weight a second
	rest    float64
	noise   *rand.Rand // nil: none
	extra   func(*Load)
	moving  []int32
	log     []string // lines of plans
	counts  map[Kind]int
}

func newWorld(t testing.TB, s Settings, partitions int) *world {
	t.Helper()
	return worldOf(t, s, must(t)(NewTable(secret, SlotsFor(max(partitions, s.Max)), Equal(partitions))))
}

func worldOf(t testing.TB, s Settings, table *Table) *world {
	return &world{t: t, table: table, planner: NewPlanner(s), sketch: NewSketch(DefaultCounters), now: 1_000_000 * time.Second,
		keys: map[string]float64{}, counts: map[Kind]int{}}
}

func (w *world) hash(name string) (hi, lo uint64) { return Hash(secret, []byte(name)) }

// rate is a rate with the noise of events that weigh 576 bytes.
func (w *world) rate(r float64) float64 {
	if w.noise == nil || r == 0 {
		return r
	}
	n := r * tick.Seconds() / 576
	return max(0, n+math.Sqrt(n)*w.noise.NormFloat64()) * 576 / tick.Seconds()
}

// tick is a tenth of a second.
func (w *world) tick() Plan {
	w.t.Helper()
	w.now += tick
	load := Load{Elapsed: tick, Slots: make([]float64, w.table.Slots()), Children: map[int32]float64{}}
	for i := range load.Slots {
		load.Slots[i] = w.rate(w.rest / float64(len(load.Slots)))
	}
	names := make([]string, 0, len(w.keys))
	for name := range w.keys {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		r := w.rate(w.keys[name])
		if r == 0 {
			continue
		}
		hi, lo := w.hash(name)
		w.sketch.Add(hi, lo, r*tick.Seconds())
		if s := w.table.splits.find(hi, lo); s != nil {
			for _, c := range s.children {
				load.Children[c.id] += r / float64(len(s.children))
			}
		} else {
			load.Slots[w.table.Lookup(hi, lo, 0).Slot] += r
		}
	}
	w.sketch.Tick(tick)
	load.Heavy = w.sketch.Rates(0)
	if w.extra != nil {
		w.extra(&load)
	}
	plan := w.planner.Next(w.table, load, w.now)
	w.apply(plan)
	return plan
}

func (w *world) apply(plan Plan) {
	w.t.Helper()
	next, err := w.table.Apply(plan)
	if err != nil {
		w.t.Fatalf("the planner wants what the table refuses: %v\n%v", err, plan)
	}
	if len(w.moving) > 0 {
		next = must(w.t)(next.Commit(w.moving...))
	}
	w.moving = w.moving[:0]
	for _, c := range plan.Changes {
		w.counts[c.Kind]++
		if c.Kind == MoveSlot {
			w.moving = append(w.moving, c.Slot)
		}
		w.log = append(w.log, fmt.Sprintf("%v %v", w.now-1_000_000*time.Second, c))
	}
	for _, n := range plan.Notes {
		w.log = append(w.log, fmt.Sprintf("%v note: %s", w.now-1_000_000*time.Second, n))
	}
	w.table = next
}

func (w *world) run(d time.Duration) {
	for end := w.now + d; w.now < end; {
		w.tick()
	}
}

func (w *world) isSplit(name string) bool {
	hi, lo := w.hash(name)
	return w.table.splits.find(hi, lo) != nil
}

// warm is a stream in which every partition of n is well used: C is target and T a fifth of it.
func warm(t testing.TB, o Ordering, n int) *world {
	w := newWorld(t, Settings{Ordering: o, Target: target}, n)
	w.rest = 0.7 * target * float64(n)
	w.run(3 * time.Second)
	if len(w.log) != 0 {
		t.Fatalf("an even load is changed: %v", w.log)
	}
	return w
}

const (
	target = 8 << 20
	bigT   = tau * target
)
