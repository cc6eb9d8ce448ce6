package partitioner

import (
	"fmt"
	"slices"
)

// The steps by which slots and children change their owner. A slot that orders events is prepared, then sealed at
// its old owner, then committed or aborted; either way it goes on under a new epoch, never under the old one.

// AddPartition adds an active partition, which owns nothing yet (see Claim).
func (t *Table) AddPartition(weight float64) (*Table, error) {
	if t.hash == Murmur2 {
		return nil, fmt.Errorf("add partition: %w", errFixed)
	}
	n := t.next()
	partitions := append(slices.Clone(t.partitions), Partition{Weight: weight})
	if err := n.setPartitions(partitions, len(t.slots)); err != nil {
		return nil, fmt.Errorf("add partition: %w", err)
	}
	return n, nil
}

// SetState changes the state of partition p; its slots stay where they are.
func (t *Table) SetState(p int32, state State) (*Table, error) {
	if t.hash == Murmur2 {
		return nil, fmt.Errorf("set state: %w", errFixed)
	}
	if p < 0 || int(p) >= len(t.partitions) {
		return nil, fmt.Errorf("set state: no partition %d", p)
	}
	n := t.next()
	partitions := slices.Clone(t.partitions)
	partitions[p].State = state
	if err := n.setPartitions(partitions, len(t.slots)); err != nil {
		return nil, fmt.Errorf("set state: %w", err)
	}
	return n, nil
}

// Prepare makes ACTIVE slots (or children, by id) MOVING to the active partition to.
func (t *Table) Prepare(to int32, ids ...int32) (*Table, error) {
	if !slices.Contains(t.active, to) {
		return nil, fmt.Errorf("prepare move: no active partition %d", to)
	}
	return t.change("prepare move", ids, func(s *slot) bool {
		ok := s.owner == s.target && int32(s.owner) != to
		s.target = uint8(to)
		return ok
	})
}

// Commit ends moves: the slots are ACTIVE at their target.
func (t *Table) Commit(ids ...int32) (*Table, error) {
	return t.change("commit move", ids, func(s *slot) bool {
		ok := s.owner != s.target
		s.owner = s.target
		s.epoch++
		return ok
	})
}

// Abort ends moves: the slots are ACTIVE where they were.
func (t *Table) Abort(ids ...int32) (*Table, error) {
	return t.change("abort move", ids, func(s *slot) bool {
		ok := s.owner != s.target
		s.target = s.owner
		s.epoch++
		return ok
	})
}

// SetWeight changes the capacity of partition p in relation to the others.
func (t *Table) SetWeight(p int32, weight float64) (*Table, error) {
	if p < 0 || int(p) >= len(t.partitions) || t.hash == Murmur2 {
		return nil, fmt.Errorf("set weight: no partition %d whose weight can change", p)
	}
	n := t.next()
	partitions := slices.Clone(t.partitions)
	partitions[p].Weight = weight
	if err := n.setPartitions(partitions, len(t.slots)); err != nil {
		return nil, fmt.Errorf("set weight: %w", err)
	}
	return n, nil
}

// change applies step to the named slots and children of the next table; step reports whether it was allowed.
func (t *Table) change(what string, ids []int32, step func(*slot) bool) (*Table, error) {
	if t.hash == Murmur2 {
		return nil, fmt.Errorf("%s: %w", what, errFixed)
	}
	n := t.next()
	for _, id := range ids {
		if s := n.byID(id); s == nil || !step(s) {
			return nil, fmt.Errorf("%s: slot %d is not there or not in the state for it", what, id)
		}
	}
	if err := n.setSplits(n.splits.all); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	n.hold()
	return n, nil
}

func (t *Table) byID(id int32) *slot {
	if id >= 0 && int(id) < len(t.slots) {
		return &t.slots[id]
	}
	for _, s := range t.splits.all {
		for i := range s.children {
			if s.children[i].id == id {
				return &s.children[i].slot
			}
		}
	}
	return nil
}

// next returns a copy with the next version that shares nothing which is changed in place.
func (t *Table) next() *Table {
	n := *t
	n.version++
	n.slots = slices.Clone(t.slots)
	all := slices.Clone(t.splits.all)
	for i := range all {
		all[i].children = slices.Clone(all[i].children)
	}
	n.splits = newSplits(all)
	return &n
}

// setSplits takes over the split keys if they are consistent.
func (t *Table) setSplits(all []split) error {
	children, seen := 0, make(map[[2]uint64]bool)
	for _, s := range all {
		d := len(s.children)
		if d < 2 || d&(d-1) != 0 && !s.Spread {
			return fmt.Errorf("%d children, a power of two from 2 on is needed", d)
		}
		if seen[[2]uint64{s.hi, s.lo}] {
			return fmt.Errorf("key %016x%016x is split twice", s.hi, s.lo)
		}
		seen[[2]uint64{s.hi, s.lo}] = true
		if !distinct(s.children) {
			return fmt.Errorf("children of key %016x%016x share a partition", s.hi, s.lo)
		}
		children += d
	}
	if children > maxChildren {
		return fmt.Errorf("%d child slots, at most %d are possible", children, maxChildren)
	}
	t.splits = newSplits(all)
	return nil
}

// distinct reports whether no two children have, or will have, the same owner.
func distinct(children []child) bool {
	var taken [MaxPartitions]bool
	for _, c := range children {
		if taken[c.target] || c.owner != c.target && taken[c.owner] {
			return false
		}
		taken[c.owner], taken[c.target] = true, true
	}
	return true
}
