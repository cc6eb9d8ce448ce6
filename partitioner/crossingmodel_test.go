package partitioner

import (
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// Any row of changes that begin and are finished or abandoned, also by another process that has read the table: per
// slot at most one partition ever gets an epoch, what is held back goes on under a new one, and each key has one place.
func TestCrossingInvariants(t *testing.T) {
	keys := make([][2]uint64, 4)
	for i := range keys {
		keys[i][0], keys[i][1] = Hash(secret, fmt.Append(nil, "key ", i))
	}
	rapid.Check(t, func(rt *rapid.T) {
		table := newTable(t, Equal(6))
		accepted := map[[2]int64]int32{} // slot or child, epoch -> partition
		check := func(rt *rapid.T) {
			see := func(id int32, at Place) {
				held := table.held != nil && table.held.has(1, 1, &at)
				place := [2]int64{int64(id), int64(at.Epoch)}
				if p, ok := accepted[place]; ok && p != at.Partition {
					rt.Fatalf("slot %d has epoch %d at %d and at %d", id, at.Epoch, p, at.Partition)
				}
				if !held {
					accepted[place] = at.Partition
				}
			}
			for n := range int32(table.Slots()) {
				see(n, table.Slot(n))
			}
			for _, s := range table.Splits() {
				seen := map[int32]bool{}
				for _, c := range s.Children {
					see(c.Child, c)
					if seen[c.Partition] {
						rt.Fatalf("two children of a key on partition %d", c.Partition)
					}
					seen[c.Partition] = true
				}
			}
		}
		step := func(rt *rapid.T, next *Table, err error) {
			if err != nil {
				return // refused, which changes nothing
			}
			if next.Version() != table.Version()+1 {
				rt.Fatalf("version %d after %d", next.Version(), table.Version())
			}
			table = next
			check(rt)
		}
		check(rt)
		rt.Repeat(map[string]func(*rapid.T){
			"begin": func(rt *rapid.T) {
				var p Plan
				for range rapid.IntRange(1, 3).Draw(rt, "changes") {
					k := rapid.SampledFrom(keys).Draw(rt, "key")
					on := rapid.Permutation([]int32{0, 1, 2, 3, 4, 5}).Draw(rt, "partitions")
					p.Changes = append(p.Changes, rapid.SampledFrom([]Change{
						{Kind: MoveSlot, Slot: rapid.Int32Range(0, table.nextChild-1).Draw(rt, "slot"), To: on[0]},
						{Kind: SplitKey, Hi: k[0], Lo: k[1], Partitions: on[:2]},
						{Kind: GrowKey, Hi: k[0], Lo: k[1], Partitions: on[:2]},
						{Kind: MergeKey, Hi: k[0], Lo: k[1]},
						{Kind: SetWeight, Partition: on[0], Weight: 0.5},
					}).Draw(rt, "change"))
				}
				next, err := table.Begin(p)
				if err == nil && table.UnderWay() {
					rt.Fatal("two at once")
				}
				step(rt, next, err)
			},
			"finish": func(rt *rapid.T) {
				if table.UnderWay() {
					f := NewFence("g", table, 0)
					for _, p := range f.Leaves() {
						f.Sealed(p, 7)
					}
					next, err := f.End(f.Next(0))
					if err != nil {
						rt.Fatal(err)
					}
					step(rt, next, nil)
				}
			},
			"abandon": func(rt *rapid.T) {
				if table.UnderWay() {
					before := table
					next, err := table.Abandon()
					if err != nil {
						rt.Fatal(err)
					}
					step(rt, next, nil)
					for _, c := range before.Pending() {
						was, is := before.Lookup(c.Hi, c.Lo, 0), table.Lookup(c.Hi, c.Lo, 0)
						if is.Partition != was.Partition || is.Epoch <= was.Epoch {
							rt.Fatalf("abandoned: %+v, was %+v", is, was)
						}
					}
				}
			},
			"restart": func(rt *rapid.T) {
				doc, err := json.Marshal(table)
				if err != nil {
					rt.Fatal(err)
				}
				if table, err = ParseTable(secret, doc); err != nil {
					rt.Fatal(err)
				}
				check(rt)
			},
			"": func(*rapid.T) {},
		})
	})
}
