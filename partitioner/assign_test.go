package partitioner

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/headgate-io/headgate/event"
)

// unmetered is New where nobody counts.
func unmetered(t *Table) *Partitioner { return New(t, nil) }

func keyed(keys ...string) *event.Batch {
	b := &event.Batch{}
	for _, key := range keys {
		b.Events = append(b.Events, event.Event{Data: []byte("data"), Key: []byte(key), HasKey: true, Slot: -7, Child: -7, Partition: -7})
	}
	return b
}

func keyless(events, size int) *event.Batch {
	b := &event.Batch{}
	for range events {
		b.Events = append(b.Events, event.Event{Data: make([]byte, size), Slot: 3, Child: 3, Epoch: 3, Hash: 3})
	}
	return b
}

func TestAssignFollowsTheTable(t *testing.T) {
	table := newTable(t, Equal(16))
	b := keyed("a", "b", "", "a")
	b.Events[1].Verdict = event.Filtered
	unmetered(table).Assign(b, nil)
	for _, i := range []int{0, 2, 3} {
		e := &b.Events[i]
		hi, lo := Hash(secret, e.Key)
		want := table.Lookup(hi, lo, 0)
		if e.Hash != hi || e.Slot != want.Slot || e.Partition != want.Partition || e.Epoch != 1 || e.Child != event.NoSlot {
			t.Errorf("event %d: %+v, want %+v", i, e, want)
		}
	}
	if b.Events[1].Partition != -7 {
		t.Error("a filtered event was assigned")
	}
	if b.TableVersion != 1 {
		t.Errorf("table version %d", b.TableVersion)
	}
}

func TestAssignOnlyWhich(t *testing.T) {
	b := keyed("a", "b", "c")
	p := unmetered(newTable(t, Equal(4)))
	p.Assign(b, []int32{2})
	if b.Events[0].Partition != -7 || b.Events[1].Partition != -7 || b.Events[2].Partition < 0 {
		t.Errorf("%+v", b.Events)
	}
	p.Assign(b, []int32{})
	if b.Events[0].Partition != -7 {
		t.Error("an empty list must assign nothing")
	}
}

func TestSwapPutsTheNewTableInForce(t *testing.T) {
	table := newTable(t, Equal(2))
	p, b := unmetered(table), keyed("a")
	p.Assign(b, nil)
	slot, other := b.Events[0].Slot, 1-b.Events[0].Partition
	p.Swap(must(t)(must(t)(table.Prepare(other, slot)).Commit(slot)))
	p.Assign(b, []int32{0})
	if e := b.Events[0]; e.Partition != other || e.Epoch != 2 || e.Slot != slot || b.TableVersion != 3 || p.Table().Version() != 3 {
		t.Errorf("%+v by table %d", e, b.TableVersion)
	}
}

func TestEmptyKeyIsAKeyLikeAnyOther(t *testing.T) {
	b := keyed("", "", "")
	b.Events[1].Key = nil
	unmetered(newTable(t, Equal(16))).Assign(b, nil)
	for i := range b.Events {
		if e := b.Events[i]; e.Slot < 0 || e.Slot != b.Events[0].Slot || e.Partition != b.Events[0].Partition {
			t.Errorf("event %d: %+v", i, e)
		}
	}
}

func TestK14KeylessEventsStickToAPartition(t *testing.T) {
	p := unmetered(must(t)(newTable(t, Equal(5)).SetState(2, Draining)))
	var runs []int // bytes in a row on one partition
	last, got := int32(-1), make([]int, 5)
	for range 4000 {
		b := keyless(10, 99)
		p.Assign(b, nil)
		first := b.Events[0].Partition
		for i := range b.Events {
			if e := b.Events[i]; e.Partition != first || e.Slot != event.NoSlot || e.Child != event.NoSlot || e.Hash != 0 || e.Epoch != 0 {
				t.Fatalf("event %d: %+v", i, e)
			}
		}
		if first != last {
			runs = append(runs, 0)
		}
		runs[len(runs)-1] += 1000
		last = first
		got[first] += 1000
	}
	for _, run := range runs[:len(runs)-1] {
		if run < stickyBytes || run > stickyBytes+1000 {
			t.Errorf("%d bytes in a row", run)
		}
	}
	if got[2] != 0 || got[0]-got[4] > stickyBytes+1000 || got[0] < 900_000 {
		t.Errorf("spread %v", got)
	}
}

func TestKeylessBatchesOfAnySizeAreSpread(t *testing.T) {
	for _, size := range []int{100, stickyBytes - 1, stickyBytes, 1 << 20} {
		p, got, b := unmetered(newTable(t, Equal(16))), make([]int, 16), keyless(1, size)
		for range 16 * 20 * (stickyBytes/size + 1) {
			p.Assign(b, nil)
			got[b.Events[0].Partition]++
		}
		if slices.Min(got) == 0 || slices.Max(got) > slices.Min(got)*5/4 {
			t.Errorf("batches of %d bytes: spread %v", size, got)
		}
	}
}

func TestEmptyKeylessEventsAreSpread(t *testing.T) {
	p, b, seen := unmetered(newTable(t, Equal(4))), keyless(1000, 0), map[int32]bool{}
	for range 1000 {
		p.Assign(b, nil)
		seen[b.Events[0].Partition] = true
	}
	if len(seen) != 4 {
		t.Errorf("only %d of 4 partitions", len(seen))
	}
}

func TestSplitKeyGoesByProducer(t *testing.T) {
	table := newTable(t, Equal(8))
	hi, lo := Hash(secret, []byte("hot"))
	p := unmetered(must(t)(table.Split(hi, lo, []int32{0, 1, 2, 3})))
	seen := map[int32]bool{}
	for i := range 100 {
		b := keyed("hot", "cold", "hot")
		b.Producer = fmt.Appendf(nil, "producer %d", i)
		p.Assign(b, nil)
		hot, cold := b.Events[0], b.Events[1]
		if hot.Child < int32(table.Slots()) || hot.Child != b.Events[2].Child || hot.Partition > 3 || hot.Slot != table.Lookup(hi, lo, 0).Slot {
			t.Fatalf("hot %+v", hot)
		}
		if cold.Child != event.NoSlot {
			t.Fatalf("cold %+v", cold)
		}
		seen[hot.Child] = true
		p.Assign(b, nil)
		if b.Events[0].Child != hot.Child {
			t.Fatal("a producer changed its child")
		}
	}
	if len(seen) != 4 {
		t.Errorf("only %d of 4 children are used", len(seen))
	}
}

// Keys of real streams must spread over equal partitions as well as slots let them.
func TestKeysAreSpread(t *testing.T) {
	p, got := unmetered(newTable(t, Equal(16))), make([]int, 16)
	b := &event.Batch{}
	for i := range 100_000 {
		b.Events = append(b.Events, event.Event{Key: fmt.Appendf(nil, "10.0.%d.%d", i>>8, i&255), HasKey: true})
	}
	p.Assign(b, nil)
	for i := range b.Events {
		got[b.Events[i].Partition]++
	}
	if mean := 100_000.0 / 16; float64(slices.Max(got)) > 1.05*mean {
		t.Errorf("max over mean %.3f: %v", float64(slices.Max(got))/mean, got)
	}
}

// Each batch must be assigned by one table only, while tables change: a slot's epoch tells by which.
func TestAssignDuringSwaps(t *testing.T) {
	table := newTable(t, Equal(2))
	hi, lo := Hash(secret, []byte("a"))
	slot := table.Lookup(hi, lo, 0).Slot
	p := unmetered(table)
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			b := keyed("a", "a")
			for {
				select {
				case <-done:
					return
				default:
				}
				p.Assign(b, nil)
				for i := range b.Events {
					if e := b.Events[i]; uint64(e.Epoch) != (b.TableVersion+1)/2 {
						t.Errorf("epoch %d by table %d", e.Epoch, b.TableVersion)
						return
					}
				}
			}
		})
	}
	for range 200 {
		now := p.Table()
		next := must(t)(now.Prepare(1-now.Slot(slot).Partition, slot))
		p.Swap(next)
		p.Swap(must(t)(next.Commit(slot)))
	}
	close(done)
	readers.Wait()
}

func TestAssignAllocatesNothing(t *testing.T) {
	hi, lo := Hash(secret, []byte("hot"))
	p := unmetered(must(t)(newTable(t, Equal(8)).Split(hi, lo, []int32{0, 1})))
	b := keyed("a", "hot", "b")
	b.Events = append(b.Events, keyless(1, 10).Events...)
	if n := testing.AllocsPerRun(100, func() { p.Assign(b, nil) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAssign(b *testing.B) {
	p := unmetered(newTable(b, Equal(16)))
	rnd := rand.New(rand.NewPCG(1, 1))
	batch := &event.Batch{}
	for range 500 {
		batch.Events = append(batch.Events, event.Event{Key: fmt.Appendf(nil, "10.%d.%d.%d", rnd.IntN(256), rnd.IntN(256), rnd.IntN(256)), HasKey: true})
	}
	b.ReportAllocs()
	for b.Loop() {
		p.Assign(batch, nil)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*500), "ns/event")
}
