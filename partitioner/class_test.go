package partitioner

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/race"
)

var classes = []event.Class{event.AsStream, event.ClassStrict, event.ClassSource}

func TestClassIsAKeySpaceOfItsOwn(t *testing.T) {
	table := must(t)(NewTable(secret, 1024, Equal(16)))
	p := unmetered(table)
	seen := map[uint64]bool{}
	for _, c := range classes {
		b := keyed("a key", "another")
		b.Class = c
		p.Assign(b, nil)
		hash, _, at := table.Locate(c, []byte("a key"), nil)
		if e := &b.Events[0]; e.Hash != hash || e.Slot != at.Slot || e.Partition != at.Partition {
			t.Errorf("class %q: %+v, but %x and %+v", c, e, hash, at)
		}
		seen[hash] = true
	}
	if own, _ := table.KeyHash(event.AsStream, []byte("a key")); len(seen) != len(classes) || !seen[own] {
		t.Errorf("hashes %v", seen)
	}
}

// A class costs an assignment nothing but its secret, and no memory after its first batch.
func TestClassedAssignDoesNotAllocate(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	p := New(must(t)(NewTable(secret, 1024, Equal(16))), NewMeter(1024))
	for _, c := range classes {
		b := keyed("a", "b", "c", "d")
		b.Class = c
		if n := testing.AllocsPerRun(100, func() { p.Assign(b, nil) }); n > 0 {
			t.Errorf("class %q: %v allocations", c, n)
		}
	}
}

// What a heavy key becomes in a stream is decided by its class.
func TestHeavyKeyIsSplitAsItsClassAllows(t *testing.T) {
	for _, o := range []Ordering{BySource, Unordered} {
		for _, c := range classes {
			table := must(t)(NewTable(secret, SlotsFor(8), Equal(8)))
			table = table.WithClasses()
			m := NewMeter(1024)
			p := New(table, m)
			planner := NewPlanner(Settings{Ordering: o})
			var split []Change
			for n := range 30 {
				b := keyed()
				for range 100 {
					b.Events = append(b.Events, event.Event{Data: make([]byte, 1000), Key: []byte("hot"), HasKey: true})
				}
				b.Class = c
				p.Assign(b, nil)
				r := m.Read(table, Tick{Elapsed: tick, Share: 0.001})
				plan := planner.Next(table, r.Load, time.Hour+time.Duration(n)*tick)
				for _, change := range plan.Changes {
					if change.Kind == SplitKey {
						split = append(split, change)
					}
				}
				next := must(t)(table.Apply(plan))
				table = must(t)(next.Commit(next.Moving()...))
				p.Swap(table)
			}
			want := max(0, min(1, int(planner.orderingOf(c)))) // Strict is 0
			if len(split) != want {
				t.Fatalf("%v, class %q: %v", o, c, split)
			}
			if want == 0 {
				continue
			}
			spread := planner.orderingOf(c) == Unordered
			if terms := split[0].Terms; terms.Spread != spread || terms.Class != c {
				t.Errorf("%v, class %q: %+v", o, c, terms)
			}
			doc, err := json.Marshal(table)
			if err != nil {
				t.Fatal(err)
			}
			again := must(t)(ParseTable(secret, doc))
			if s := again.Splits(); !again.Classed() || len(s) != 1 || s[0].Class != c {
				t.Errorf("%s", doc)
			}
			if s := again.Loosen().Splits()[0]; s.Spread != (c == event.AsStream) {
				t.Errorf("%v, class %q: loosened to %+v", o, c, s)
			}
		}
	}
}

// Where some keys have an order, a lane with a backlog is not left.
func TestClassedTableIsOrdered(t *testing.T) {
	w := warm(t, Unordered, 4)
	w.table = w.table.WithClasses()
	w.extra = func(l *Load) { l.Backlog = []time.Duration{time.Minute, time.Minute, time.Minute, time.Minute} }
	w.keys["hot"] = 4 * bigT
	w.run(10 * time.Second)
	if len(w.counts) != 0 {
		t.Errorf("%v", w.log)
	}
}
