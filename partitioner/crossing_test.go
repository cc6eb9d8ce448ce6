package partitioner

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/headgate-io/headgate/event"
)

// beginning is a table of 8 partitions in which a key is split by a plan that is under way.
func beginning(t *testing.T) (before, begun *Table, hi, lo uint64) {
	t.Helper()
	before = newTable(t, Equal(8))
	hi, lo = Hash(secret, []byte("hot"))
	from := before.Lookup(hi, lo, 0).Partition
	plan := Plan{Changes: []Change{{Kind: SplitKey, Hi: hi, Lo: lo, Partitions: []int32{from, (from + 1) % 8, (from + 2) % 8, (from + 3) % 8}}}}
	return before, must(t)(before.Begin(plan)), hi, lo
}

func TestWhatIsUnderWayIsParked(t *testing.T) {
	before, begun, _, _ := beginning(t)
	p := unmetered(begun)
	b := keyed("hot", "cold", "hot")
	p.Assign(b, nil)
	if b.Events[0].Partition != event.Parked || b.Events[2].Partition != event.Parked || b.Events[1].Partition < 0 || b.TableVersion != before.Version()+1 {
		t.Fatalf("%+v", b.Events)
	}
	p.Swap(must(t)(begun.Finish([]Predecessor{{From: 1, To: 2, Gateway: "g", Number: 7}})))
	p.Assign(b, []int32{0, 2})
	if e := b.Events[0]; e.Partition < 0 || e.Child < int32(before.Slots()) || b.Events[2].Partition != e.Partition {
		t.Errorf("finished: %+v", e)
	}
	if got := p.Table().Predecessors(); len(got) != 1 || got[0].Number != 7 || p.Table().UnderWay() {
		t.Errorf("predecessors %v", got)
	}
}

// Invariant 12: what was under way never goes on under the epoch that it had.
func TestAbandonedGoesOnUnderANewEpoch(t *testing.T) {
	before, begun, hi, lo := beginning(t)
	was, is := before.Lookup(hi, lo, 0), must(t)(begun.Abandon()).Lookup(hi, lo, 0)
	if is.Partition != was.Partition || is.Epoch != was.Epoch+1 || is.Child != event.NoSlot {
		t.Errorf("%+v, was %+v", is, was)
	}
	two := must(t)(before.Split(hi, lo, []int32{1, 2}))
	for _, c := range []Change{{Kind: GrowKey, Hi: hi, Lo: lo, Partitions: []int32{3, 4}}, {Kind: MergeKey, Hi: hi, Lo: lo}} {
		after := must(t)(must(t)(two.Begin(Plan{Changes: []Change{c}})).Abandon())
		for source := range uint64(2) {
			was, is := two.Lookup(hi, lo, source), after.Lookup(hi, lo, source)
			if is.Partition != was.Partition || is.Child != was.Child || is.Epoch != was.Epoch+1 {
				t.Errorf("%v: %+v, was %+v", c.Kind, is, was)
			}
		}
	}
}

func TestCrossingsNameWhoIsLeftAndWhoIsEntered(t *testing.T) {
	before, begun, hi, lo := beginning(t)
	from := before.Lookup(hi, lo, 0).Partition
	all := begun.Crossings()
	if len(all) != 3 || slices.ContainsFunc(all, func(c Crossing) bool { return c.From != from || c.To == from }) {
		t.Errorf("split: %v", all)
	}
	two := must(t)(before.Split(hi, lo, []int32{1, 2}))
	grown := must(t)(two.Begin(Plan{Changes: []Change{{Kind: GrowKey, Hi: hi, Lo: lo, Partitions: []int32{3, 4, 5, 6, 7, 0}}}}))
	if got := grown.Crossings(); !slices.Equal(got, []Crossing{{1, 3}, {1, 5}, {1, 7}, {2, 0}, {2, 4}, {2, 6}}) {
		t.Errorf("grow: %v", got)
	}
	for source := range uint64(8) { // each child has one predecessor, the one that its sources had
		a, b := two.Lookup(hi, lo, source).Partition, must(t)(grown.Finish(nil)).Lookup(hi, lo, source).Partition
		if a != b && !slices.Contains(grown.Crossings(), Crossing{a, b}) {
			t.Errorf("source %d goes from %d to %d", source, a, b)
		}
	}
}

func TestTableUnderWayRoundTrips(t *testing.T) {
	_, begun, _, _ := beginning(t)
	begun = must(t)(must(t)(begun.Finish([]Predecessor{{From: 1, To: 2, Gateway: "g", Number: 7}})).Prepare(3, must(t)(begun.Abandon()).movable(3)))
	for _, table := range []*Table{begun, func() *Table { _, b, _, _ := beginning(t); return b }()} {
		doc, err := json.Marshal(table)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseTable(secret, doc)
		if err != nil {
			t.Fatal(err)
		}
		if !got.UnderWay() || !reflect.DeepEqual(got.held, table.held) || !reflect.DeepEqual(got.Crossings(), table.Crossings()) || !reflect.DeepEqual(got.after, table.after) {
			t.Errorf("%+v came back as %+v", table.held, got.held)
		}
	}
}

// movable is a slot that partition p does not own.
func (t *Table) movable(p int32) int32 {
	return int32(slices.IndexFunc(t.slots, func(s slot) bool { return int32(s.owner) != p }))
}

func TestFenceFinishesOrAbandons(t *testing.T) {
	before, begun, hi, lo := beginning(t)
	from := before.Lookup(hi, lo, 0).Partition
	f := NewFence("g", begun, time.Minute)
	if f.Next(time.Minute) != Wait || !slices.Equal(f.Leaves(), []int32{from}) || f.Next(time.Minute+FenceTime) != Abandon {
		t.Errorf("leaves %v", f.Leaves())
	}
	f.Sealed(from, 99)
	if f.Next(time.Minute+2*FenceTime) != Finish || len(f.Marks()) != 3 || f.Marks()[0].Number != 99 {
		t.Errorf("marks %v", f.Marks())
	}
	if end := must(t)(f.End(Finish)); end.Lookup(hi, lo, 0).Child < 0 || end.Version() != begun.Version()+1 {
		t.Error("it did not finish")
	}
	f = NewFence("g", begun, 0)
	f.Failed()
	if f.Next(0) != Abandon || must(t)(f.End(Abandon)).Lookup(hi, lo, 0).Child >= 0 {
		t.Error("it did not abandon")
	}
}

// A slot goes from 0 to 1 and on to 2 before 1 had anything of it: nothing in 1 says that 0 comes before, so 2 has to.
func TestMarksAreHandedOn(t *testing.T) {
	before := newTable(t, Equal(4))
	slot := int32(slices.IndexFunc(before.slots, func(s slot) bool { return s.owner == 1 }))
	f := NewFence("g", must(t)(before.Begin(Plan{Changes: []Change{{Kind: MoveSlot, Slot: slot, To: 2}}})), 0)
	f.Inherits(1, []Predecessor{{From: 0, To: 1, Gateway: "g", Number: 7}, {From: 2, To: 1, Gateway: "g", Number: 8}, {From: 0, To: 1, Gateway: "g", Number: 5}})
	f.Sealed(1, 0)
	if got := f.Marks(); !slices.Equal(got, []Predecessor{{From: 0, To: 2, Gateway: "g", Number: 7}}) {
		t.Errorf("marks %v", got)
	}
}

func TestBeginRefusesTwoAtOnce(t *testing.T) {
	_, begun, hi, _ := beginning(t)
	if _, err := begun.Begin(Plan{Changes: []Change{{Kind: SplitKey, Hi: hi, Lo: 1, Partitions: []int32{1, 2}}}}); err == nil {
		t.Error("a second one began")
	}
	if _, err := newTable(t, Equal(8)).Begin(Plan{Changes: []Change{{Kind: GrowKey, Hi: hi, Lo: 1, Partitions: []int32{1, 2}}}}); err == nil {
		t.Error("what cannot end began")
	}
}

// A table remembers what no frame names yet, however much that is, and forgets what one does.
func TestATableRemembersWhatNoFrameNames(t *testing.T) {
	table := must(t)(NewTable(Secret{}, SlotsFor(8), Equal(8)))
	const many = 2 * MaxPredecessors
	var marks []Predecessor
	for n := range many {
		marks = append(marks, Predecessor{From: int32(n % 8), To: int32(n / 8 % 8), Gateway: fmt.Sprint("g", n), Number: uint64(n + 1)})
	}
	begin := func() *Fence {
		for slot := int32(0); ; slot++ {
			if at := table.Slot(slot); at.Partition == 0 {
				return NewFence("g", must(t)(table.Begin(Plan{Changes: []Change{{Kind: MoveSlot, Slot: slot, To: 5}}})), 0)
			}
		}
	}
	f := begin()
	full := must(t)(f.table.Finish(marks))
	doc, err := json.Marshal(full)
	if err != nil {
		t.Fatal(err)
	}
	if table, err = ParseTable(Secret{}, doc); err != nil || len(table.Predecessors()) != many {
		t.Fatalf("%d remembered, %v", len(table.Predecessors()), err)
	}
	f = begin()
	if n := Needs(f.table, marks[:100]); n <= 100 || n > 120 {
		t.Errorf("needs %d", n)
	}
	f.Sealed(0, 77)
	f.Unnamed(marks[many-2:])
	end := must(t)(f.End(Finish))
	if got, want := end.Predecessors(), append(slices.Clone(marks[many-2:]), Predecessor{0, 5, "g", 77}); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if len(table.Predecessors()) != many || len(f.table.Predecessors()) != many {
		t.Error("the table before has changed")
	}
}
