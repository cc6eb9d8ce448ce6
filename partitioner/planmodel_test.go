package partitioner

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Any life of a planner and a table: keys come and go, partitions are lost, planners are replaced, moves end well or
// not. What has to hold at all times is checked after each step.
func TestPlannerInvariants(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := Settings{
			Ordering:  rapid.SampledFrom([]Ordering{Strict, BySource, Unordered}).Draw(rt, "ordering"),
			MaxFanout: rapid.SampledFrom([]int{0, 2, 5}).Draw(rt, "max fanout"),
			Target:    rapid.SampledFrom([]float64{0, 1 << 20}).Draw(rt, "target"),
		}
		if s.Target > 0 {
			s.Min, s.Max = 1, rapid.IntRange(2, 12).Draw(rt, "max partitions")
		}
		w := newWorld(t, s, rapid.IntRange(1, 10).Draw(rt, "partitions"))
		m := &model{world: w, was: w.table, epochs: map[int32]uint32{}, gone: map[int32]bool{}}
		w.extra = m.disturb
		rt.Repeat(map[string]func(*rapid.T){
			"rates": func(rt *rapid.T) {
				w.rest = rapid.Float64Range(0, 20<<20).Draw(rt, "rest")
				for n := range rapid.IntRange(0, 5).Draw(rt, "keys") {
					w.keys[fmt.Sprint("key ", n)] = rapid.SampledFrom([]float64{0, 1e4, 3e5, 1e6, 1e7, 1e9}).Draw(rt, "rate")
				}
			},
			"lose": func(rt *rapid.T) {
				m.lost = m.lost[:0]
				for range rapid.IntRange(0, 4).Draw(rt, "lost") {
					m.lost = append(m.lost, rapid.Int32Range(0, int32(len(w.table.partitions)-1)).Draw(rt, "partition"))
				}
			},
			"backlog": func(rt *rapid.T) {
				m.backlog = rapid.SliceOfN(rapid.Int64Range(0, 2000), 0, 12).Draw(rt, "milliseconds")
			},
			"slow":    func(rt *rapid.T) { m.ack = rapid.SliceOfN(rapid.Int64Range(0, 100), 0, 12).Draw(rt, "milliseconds") },
			"replace": func(*rapid.T) { w.planner = NewPlanner(s) },
			"pass": func(rt *rapid.T) {
				for range rapid.IntRange(1, 60).Draw(rt, "ticks") {
					if rapid.IntRange(0, 9).Draw(rt, "abort") == 0 && len(w.moving) > 0 {
						w.table = must(t)(w.table.Abort(w.moving...))
						w.moving = nil
						m.check(rt)
					}
					m.plan = w.tick()
					m.check(rt)
				}
			},
			"long": func(rt *rapid.T) {
				w.now += rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour, -time.Second, -time.Hour}).Draw(rt, "how long") // clocks step, too
			},
			"": func(*rapid.T) {},
		})
	})
}

type model struct {
	*world
	was          *Table
	epochs       map[int32]uint32 // of each slot and child, the highest
	gone         map[int32]bool   // children that ended
	lost         []int32
	backlog, ack []int64
	plan         Plan
}

func (m *model) disturb(l *Load) {
	l.Lost = m.lost
	for _, ms := range m.backlog {
		l.Backlog = append(l.Backlog, time.Duration(ms)*time.Millisecond)
	}
	for _, ms := range m.ack {
		l.Ack = append(l.Ack, time.Duration(ms)*time.Millisecond)
	}
}

func (m *model) check(t *rapid.T) {
	n, s := m.table, m.planner.s
	if n != m.was && n.version <= m.was.version {
		t.Fatalf("version %d follows %d", n.version, m.was.version)
	}
	if n.nextChild < m.was.nextChild {
		t.Fatal("ids of children are used again")
	}
	for i := range n.slots {
		m.checkSlot(t, int32(i), n.slots[i])
	}
	alive := map[int32]bool{}
	for _, k := range n.splits.all {
		if s.Ordering == Strict || s.MaxFanout > 0 && len(k.children) > s.MaxFanout {
			t.Fatalf("key split %d ways with %+v", len(k.children), s)
		}
		if !distinct(k.children) {
			t.Fatalf("children together: %v", k.children)
		}
		for _, c := range k.children {
			if m.gone[c.id] {
				t.Fatalf("child %d came back", c.id)
			}
			alive[c.id] = true
			m.checkSlot(t, c.id, c.slot)
		}
	}
	for id := range m.epochs {
		m.gone[id] = m.gone[id] || int(id) >= len(n.slots) && !alive[id]
	}
	m.checkPlan(t)
	l := n.ledger
	if l.Load < 0 || l.Load > budgetLoad || l.Slots < 0 || l.Slots > budgetSlots || len(l.Merged) > maxMerged {
		t.Fatalf("ledger %+v", l)
	}
	doc, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParseTable(secret, doc); err != nil {
		t.Fatal(err)
	}
	m.was = n
}

// checkSlot: an epoch belongs to one partition and never comes back, not even to the same one.
func (m *model) checkSlot(t *rapid.T, id int32, now slot) {
	was := m.was.byID(id)
	if was != nil && (now.epoch < was.epoch || now.owner != was.owner && now.epoch == was.epoch || was.owner != was.target && now.owner == now.target && now.epoch == was.epoch) {
		t.Fatalf("slot %d went from %+v to %+v", id, *was, now)
	}
	m.epochs[id] = max(m.epochs[id], now.epoch)
}

func (m *model) checkPlan(t *rapid.T) {
	moves := 0
	for _, c := range m.plan.Changes {
		if c.Reason == "" {
			t.Fatalf("no reason: %v", c)
		}
		if c.Kind == MoveSlot {
			moves++
			if slices.Contains(m.lost, c.To) {
				t.Fatalf("moves to a lost partition: %v", c)
			}
			if m.planner.s.Ordering != Unordered && (slices.Contains(m.lost, c.Partition) || int(c.Partition) < len(m.backlog) && m.backlog[c.Partition] > 1000) {
				t.Fatalf("leaves a lane with a backlog: %v", c)
			}
		}
	}
	most := budgetSlots*float64(len(m.table.slots)) + 1
	if m.planner.s.Max > 0 { // to fill and to empty partitions
		most = max(most, resizeStep*float64(len(m.table.slots)))
	}
	if r := m.planner.round; r.first && m.now-r.since < firstRound {
		most *= firstCredit
	}
	if float64(moves) > most {
		t.Fatalf("%d moves at once, %v may: %v", moves, most, m.plan)
	}
	m.plan = Plan{}
}
