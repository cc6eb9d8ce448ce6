package partitioner

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/headgate-io/headgate/event"
)

// Bounds of a table. They keep its stored form under 256 KiB.
const (
	MaxPartitions           = 256
	slotsPerPartition       = 64 // at least so many slots for each partition there may ever be: fine enough to balance
	maxSlots                = slotsPerPartition * MaxPartitions
	maxChildren             = 1024 // child slots of all split keys together
	noPartition       int32 = -1
)

// State says whether a partition takes part.
type State uint8

// The states of a partition.
const (
	Active   State = iota // gets slots and events without a key
	Draining              // keeps the slots it has until they are moved away, gets nothing new
)

// Partition is what the table knows of a partition; its id is its position.
type Partition struct {
	Weight float64 // capacity in relation to the other partitions, over 0
	State  State
}

// Equal returns n active partitions of the same weight.
func Equal(n int) []Partition {
	all := make([]Partition, n)
	for i := range all {
		all[i].Weight = 1
	}
	return all
}

// SlotsFor returns how many slots a stream needs that may grow to maxPartitions. The number is fixed for its life.
func SlotsFor(maxPartitions int) int {
	return 1 << bits.Len(uint(slotsPerPartition*maxPartitions-1))
}

// Table is an immutable routing table. Methods that change something return a new table of the next version.
type Table struct {
	version    uint64
	secret     Secret
	partitions []Partition
	active     []int32 // ids of the active partitions
	shift      uint8   // slot = hi >> shift
	hash       HashKind
	slots      []slot
	splits     splits
	nextChild  int32 // child slot ids from here on were never used; below it they are never used again
	ledger     Ledger
	pending    []Change      // of keys, prepared; see Begin
	classed    bool          // see Classed
	held       *held         // what is between two owners because of them or of moves, nil for nothing
	after      []Predecessor // see Finish
}

// slot is the owner of one share of the hash space, or of a part of a split key. It is MOVING while target is
// another partition than the owner, else ACTIVE.
type slot struct {
	epoch         uint32 // from 1; grows with each change of the owner
	owner, target uint8
}

// Place is where the events of a key and source go. It has four fields: with more the compiler keeps it in memory
// and a look-up takes twice as long.
type Place struct {
	Slot      int32 // share of the hash space
	Child     int32 // child slot of a split key, else event.NoSlot
	Partition int32 // owner of the child, or of the slot
	Epoch     uint32
}

// NewTable returns version 1 of a stream's table: v slots, SlotsFor the most partitions there will be, spread
// over the active partitions in proportion to their weights.
func NewTable(secret Secret, v int, partitions []Partition) (*Table, error) {
	t := &Table{version: 1, secret: secret, nextChild: int32(v)}
	if err := t.setPartitions(partitions, v); err != nil {
		return nil, fmt.Errorf("new table: %w", err)
	}
	t.slots = make([]slot, v)
	t.placeAll()
	return t, nil
}

// setPartitions takes over the partitions, and that there are v slots, if that makes a table.
func (t *Table) setPartitions(partitions []Partition, v int) error {
	if len(partitions) > MaxPartitions {
		return fmt.Errorf("%d partitions, at most %d are possible", len(partitions), MaxPartitions)
	}
	if v&(v-1) != 0 || v < slotsPerPartition*len(partitions) || v > maxSlots {
		return fmt.Errorf("%d slots for %d partitions: a power of two is needed, at least %d a partition, at most %d",
			v, len(partitions), slotsPerPartition, maxSlots)
	}
	t.partitions, t.active = slices.Clone(partitions), nil
	for i, p := range partitions {
		if !(p.Weight > 0) || math.IsInf(p.Weight, 0) || p.State > Draining {
			return fmt.Errorf("partition %d: weight %v, state %d", i, p.Weight, p.State)
		}
		if p.State == Active {
			t.active = append(t.active, int32(i))
		}
	}
	if len(t.active) == 0 {
		return errors.New("no active partition")
	}
	t.shift = uint8(64 - bits.TrailingZeros(uint(v)))
	return nil
}

// Lookup returns where the events of a key (its Hash) from a source (lo of the Hash of the producer's name) go.
// The source matters only for split keys.
func (t *Table) Lookup(hi, lo, source uint64) Place {
	n := int32(hi >> t.shift)
	if s := t.splits.find(hi, lo); s != nil {
		c := &s.children[s.choose(source)]
		return c.place(n, c.id)
	}
	return t.slots[n].place(n, event.NoSlot)
}

// Locate returns the KeyHash of a key of a class, and where its events from a source go.
func (t *Table) Locate(c event.Class, key, source []byte) (hi, lo uint64, at Place) {
	_, producer := Hash(t.secret, source)
	hi, lo = t.KeyHash(c, key)
	return hi, lo, t.Lookup(hi, lo, producer)
}

func (s *slot) place(n, child int32) Place {
	return Place{Slot: n, Child: child, Partition: int32(s.owner), Epoch: s.epoch}
}

// Version grows by one with each change.
func (t *Table) Version() uint64 { return t.version }

// Slots is the number of slots, V.
func (t *Table) Slots() int { return len(t.slots) }

// Slot returns the place of slot n.
func (t *Table) Slot(n int32) Place { return t.slots[n].place(n, event.NoSlot) }

// Partitions returns a copy of the partitions.
func (t *Table) Partitions() []Partition { return slices.Clone(t.partitions) }

// Active is how many partitions take part.
func (t *Table) Active() int { return len(t.active) }

// Used tells of each partition whether it has a slot or child, or is to get one.
func (t *Table) Used() []bool {
	used := make([]bool, len(t.partitions))
	for _, s := range t.slots {
		used[s.owner], used[s.target] = true, true
	}
	for _, s := range t.splits.all {
		for _, c := range s.children {
			used[c.owner], used[c.target] = true, true
		}
	}
	return used
}

// Counts returns how many slots each partition owns, children not counted.
func (t *Table) Counts() []int {
	counts := make([]int, len(t.partitions))
	for _, s := range t.slots {
		counts[s.owner]++
	}
	return counts
}

// String describes the table in one line.
func (t *Table) String() string {
	return fmt.Sprintf("table %d: %d slots on %d partitions (%d active), %d split keys",
		t.version, len(t.slots), len(t.partitions), len(t.active), len(t.splits.all))
}
