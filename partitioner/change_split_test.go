package partitioner

import (
	"reflect"
	"slices"
	"testing"

	"github.com/headgate-io/headgate/event"
)

// A reader follows a key through its tables: each change of who gets it is under an epoch of its own.
func TestK20SplitGrowMergeLeavesATrail(t *testing.T) {
	table := newTable(t, Equal(8))
	hi, lo := Hash(secret, []byte("hot"))
	parent := table.Lookup(hi, lo, 0)
	two := must(t)(table.Split(hi, lo, []int32{3, 1}))
	four := must(t)(two.Grow(hi, lo, []int32{5, 2}))
	seen := map[[3]int64]bool{{int64(parent.Slot), event.NoSlot, int64(parent.Epoch)}: true}
	for _, step := range []*Table{two, four} {
		for source := range uint64(4) {
			at := step.Lookup(hi, lo, source)
			if at.Slot != parent.Slot || at.Child < int32(table.Slots()) {
				t.Errorf("source %d: %+v", source, at)
			}
			seen[[3]int64{int64(at.Slot), int64(at.Child), int64(at.Epoch)}] = true
		}
	}
	if len(seen) != 1+2+4 {
		t.Errorf("%d places of slot, child and epoch, want 7", len(seen))
	}
	for source := range uint64(16) { // child i becomes {i, i+d}
		before, after := two.Lookup(hi, lo, source), four.Lookup(hi, lo, source)
		if source%4 < 2 && (after.Child != before.Child || after.Epoch != before.Epoch+1 || after.Partition != before.Partition) {
			t.Errorf("source %d: %+v became %+v", source, before, after)
		}
		if source%4 >= 2 && (after.Child < before.Child || after.Epoch != 1) {
			t.Errorf("source %d: %+v became %+v", source, before, after)
		}
	}
	merged := must(t)(four.Merge(hi, lo))
	if got := merged.Lookup(hi, lo, 9); got.Slot != parent.Slot || got.Child != event.NoSlot || got.Epoch != parent.Epoch+1 || got.Partition != parent.Partition {
		t.Errorf("merged: %+v, was %+v", got, parent)
	}
	again := must(t)(merged.Split(hi, lo, []int32{3, 1}))
	if got := again.Lookup(hi, lo, 0).Child; got != int32(table.Slots())+4 {
		t.Errorf("child id %d was used before", got)
	}
}

func TestGrowAndMergeRefuse(t *testing.T) {
	table := newTable(t, Equal(8))
	two := must(t)(table.Split(1<<63, 2, []int32{0, 1}))
	child := two.Splits()[0].Children[0].Child
	moving := must(t)(two.Prepare(4, child))
	slot := two.Lookup(1<<63, 2, 0).Slot
	parentMoves := must(t)(two.Prepare((two.Slot(slot).Partition+1)%8, slot))
	for name, step := range map[string]func() (*Table, error){
		"grow what is whole":     func() (*Table, error) { return table.Grow(1<<63, 2, []int32{3, 4}) },
		"grow by one":            func() (*Table, error) { return two.Grow(1<<63, 2, []int32{3}) },
		"grow onto itself":       func() (*Table, error) { return two.Grow(1<<63, 2, []int32{0, 4}) },
		"grow onto nobody":       func() (*Table, error) { return two.Grow(1<<63, 2, []int32{8, 4}) },
		"grow a moving child":    func() (*Table, error) { return moving.Grow(1<<63, 2, []int32{5, 6}) },
		"merge what is whole":    func() (*Table, error) { return table.Merge(1<<63, 2) },
		"merge a moving child":   func() (*Table, error) { return moving.Merge(1<<63, 2) },
		"merge into moving slot": func() (*Table, error) { return parentMoves.Merge(1<<63, 2) },
	} {
		if _, err := step(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := two.Merge(1<<63, 2); err != nil {
		t.Error(err)
	}
}

func TestSpreadKeyGoesToTheLeastLoadedOfItsOwn(t *testing.T) {
	table := must(t)(newTable(t, Equal(5)).SplitOn(7, 7, []int32{1, 4, 3}, SplitTerms{Spread: true}))
	load := make([]float64, 5)
	for turn := range uint64(300) {
		load[table.LookupLeast(7, 7, turn, load).Partition]++
	}
	if !slices.Equal(load, []float64{0, 100, 0, 100, 100}) {
		t.Errorf("load %v", load)
	}
	load[3] = 0
	if got := table.LookupLeast(7, 7, 0, load); got.Partition != 3 || got != table.Lookup(7, 7, 2) {
		t.Errorf("went to %+v", got)
	}
	if got := must(t)(table.SetWeight(4, 1000)).LookupLeast(7, 7, 0, []float64{1, 1, 1, 1, 1}); got.Partition != 4 {
		t.Errorf("went to %+v, not to the strongest", got)
	}
	if got := table.LookupLeast(8, 8, 3, load); got != table.Lookup(8, 8, 3) {
		t.Errorf("a key that is whole went to %+v", got)
	}
}

// One decision an event, and it is about nothing but where the event goes.
func TestK06SplitChangesNothingElseOfAnEvent(t *testing.T) {
	table := newTable(t, Equal(8))
	hi, lo := Hash(secret, []byte("hot"))
	split := must(t)(table.Split(hi, lo, []int32{3, 1}))
	batch := func() *event.Batch {
		b := keyed("hot", "cold", "hot")
		b.Producer = []byte("sensor 7")
		for i := range b.Events {
			e := &b.Events[i]
			e.Data, e.ID = []byte(`{"Headgate-Slot":5,"partition":9}`), []byte("id")
			e.Attrs = []event.Attr{{Name: []byte("headgate-partition"), Value: []byte("9")}, {Name: []byte("child"), Value: []byte("1")}}
		}
		return b
	}
	whole, parted := batch(), batch()
	unmetered(table).Assign(whole, nil)
	unmetered(split).Assign(parted, nil)
	for i := range whole.Events {
		was, is := whole.Events[i], parted.Events[i]
		if i != 1 && (is.Child < int32(table.Slots()) || is.Slot != was.Slot || is.Hash != was.Hash) {
			t.Errorf("event %d: %+v, was %+v", i, is, was)
		}
		is.Child, is.Partition, is.Epoch = was.Child, was.Partition, was.Epoch
		if !reflect.DeepEqual(was, is) {
			t.Errorf("event %d: %+v became %+v", i, was, is)
		}
	}
}
