package partitioner

import (
	"fmt"
	"testing"
	"time"
)

// limits are the limits that a world's planner has in force.
func (w *world) limits() (all []Limit) {
	for _, l := range w.planner.limits {
		all = append(all, l.Limit)
	}
	return all
}

func TestK08StrictKeyIsLimitedToItsPartitionsTarget(t *testing.T) {
	w := warm(t, Strict, 4)
	w.keys["hot"] = 0.9 * target
	w.run(10 * time.Second)
	if l := w.limits(); len(l) != 0 {
		t.Fatalf("a key that fits is limited: %v", l)
	}
	w.keys["hot"] = 3 * target
	w.run(time.Second)
	hi, lo := w.hash("hot")
	if l := w.limits(); len(l) != 1 || l[0].Hi != hi || l[0].Lo != lo || l[0].Rate != target || l[0].Reason == "" {
		t.Fatalf("%v", l)
	}
	// as long as something of it is refused
	w.keys["hot"] = target
	w.extra = func(l *Load) { l.Refused = map[[2]uint64]float64{{hi, lo}: 2 * target} }
	w.run(3 * time.Minute)
	if l := w.limits(); len(l) != 1 {
		t.Fatal(l)
	}
	// and then for its hold
	w.extra = nil
	w.run(hold - time.Second)
	if l := w.limits(); len(l) != 1 || w.planner.Settled(w.table) {
		t.Fatal(l)
	}
	w.run(2 * time.Second)
	if l := w.limits(); len(l) != 0 {
		t.Errorf("%v", l)
	}
}

func TestOnlyWhatCannotBeDividedIsLimited(t *testing.T) {
	for _, o := range []Ordering{BySource, Unordered} {
		w := warm(t, o, 4)
		w.keys["hot"] = 3 * target
		w.run(10 * time.Second)
		if l := w.limits(); len(l) != 0 || !w.isSplit("hot") {
			t.Errorf("%v: %v", o, l)
		}
	}
}

// Without a target the limit follows what the backend confirms while the backlog of the key's partition grows.
func TestLimitIsMeasuredWithoutATarget(t *testing.T) {
	w := newWorld(t, Settings{Ordering: Strict}, 4)
	w.keys["hot"], w.rest = 3*target, 0.1*target
	w.run(10 * time.Second)
	if l := w.limits(); len(l) != 0 {
		t.Fatalf("nobody knows what a partition takes: %v", l)
	}
	hi, lo := w.hash("hot")
	at := w.table.Lookup(hi, lo, 0).Partition
	confirms := func(rate float64) {
		w.extra = func(l *Load) {
			l.Confirmed = make([]float64, 4)
			l.Confirmed[at] = rate
			l.Refused = map[[2]uint64]float64{{hi, lo}: target}
		}
	}
	confirms(target)
	w.run(time.Second)
	first := w.limits()
	if len(first) != 1 || first[0].Rate > limitRoom*target || first[0].Rate < 0.8*limitRoom*target || first[0].Partition != at {
		t.Fatalf("%v", first)
	}
	w.keys["hot"] = first[0].Rate
	confirms(target / 2) // it has become slower
	w.run(3 * time.Second)
	if l := w.limits(); len(l) != 1 || l[0].Rate != limitRoom*target/2 {
		t.Fatalf("%v", l)
	}
	confirms(0) // the backlog is gone
	w.run(hold + time.Second)
	if l := w.limits(); len(l) != 1 || l[0].Rate != limitMore*limitRoom*target/2 {
		t.Errorf("%v", l)
	}
	w.extra = nil
	w.run(hold + time.Second)
	if l := w.limits(); len(l) != 0 {
		t.Errorf("%v", l)
	}
}

// What a key brings is compared with what its partition gets now: another key that was there and has gone, which the load of
// the partition still remembers, takes nothing of the limit.
func TestLimitForgetsAKeyThatHasGone(t *testing.T) {
	for _, gone := range []float64{3, 10} {
		w := newWorld(t, Settings{Ordering: Strict}, 4)
		w.rest, w.keys["gone"] = 0.1*target, gone*target
		w.run(10 * time.Second)
		hi, lo := w.hash("gone")
		at := w.table.Lookup(hi, lo, 0).Partition
		next := ""
		for n := 0; next == ""; n++ {
			if hi, lo := w.hash(fmt.Sprint("next ", n)); w.table.Lookup(hi, lo, 0).Partition == at {
				next = fmt.Sprint("next ", n)
			}
		}
		w.keys["gone"], w.keys[next] = 0, 3*target
		w.run(2 * time.Second)
		w.extra = func(l *Load) {
			l.Confirmed = make([]float64, 4)
			l.Confirmed[at] = target
		}
		limit := func() float64 {
			hi, lo := w.hash(next)
			if l := w.planner.limits[[2]uint64{hi, lo}]; l != nil {
				return l.Rate
			}
			return 0
		}
		for n := 0; limit() == 0; n++ {
			if w.tick(); n > 100 {
				t.Fatal("it gets no limit")
			}
		}
		if rate := limit(); rate < 0.8*limitRoom*target || w.now > (1_000_000+20)*time.Second {
			t.Errorf("%.0f of %.0f are its limit, %v after it began", rate, limitRoom*target, w.now-(1_000_000+10)*time.Second)
		}
	}
}
