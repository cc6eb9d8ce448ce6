package partitioner

import (
	"fmt"
	"slices"

	"github.com/headgate-io/headgate/event"
)

// The steps of a key's life as a split one. The caller sees to it that nothing of the key is on its way under an older
// table when its events are ordered. Ids of children are never used again.

// Split spreads a key (its Hash) over new child slots by source, one on each of the partitions, which are distinct,
// active and a power of two in number.
func (t *Table) Split(hi, lo uint64, partitions []int32) (*Table, error) {
	return t.SplitOn(hi, lo, partitions, SplitTerms{})
}

// SplitOn is Split on terms.
func (t *Table) SplitOn(hi, lo uint64, partitions []int32, terms SplitTerms) (*Table, error) {
	switch {
	case t.hash == Murmur2:
		return nil, fmt.Errorf("split key: %w", errFixed)
	case t.splits.find(hi, lo) != nil:
		return nil, fmt.Errorf("split key %016x%016x: it is split already", hi, lo)
	}
	n := t.next()
	s := split{hi: hi, lo: lo, SplitTerms: terms}
	if err := n.bear(&s, partitions); err != nil {
		return nil, fmt.Errorf("split key %016x%016x: %w", hi, lo, err)
	}
	if err := n.setSplits(append(n.splits.all, s)); err != nil {
		return nil, fmt.Errorf("split key: %w", err)
	}
	return n, nil
}

// Grow adds children on partitions to a split key. One that is split by source gets as many more as it has, or three
// or seven times as many, and so on: child i shares its sources with the children i+d, i+2d, and goes on under a new
// epoch, so each child has one predecessor.
func (t *Table) Grow(hi, lo uint64, partitions []int32) (*Table, error) {
	n := t.next()
	s := n.splits.find(hi, lo)
	if s == nil {
		return nil, fmt.Errorf("grow key %016x%016x: it is not split", hi, lo)
	}
	for i := range s.children {
		c := &s.children[i]
		if c.owner != c.target {
			return nil, fmt.Errorf("grow key %016x%016x: its child %d is moving", hi, lo, c.id)
		}
		if !s.Spread {
			c.epoch++
		}
	}
	if err := n.bear(s, partitions); err != nil {
		return nil, fmt.Errorf("grow key %016x%016x: %w", hi, lo, err)
	}
	if err := n.setSplits(n.splits.all); err != nil {
		return nil, fmt.Errorf("grow key: %w", err)
	}
	return n, nil
}

// Merge gives a split key back to its slot, which goes on under a new epoch; its children have ended.
func (t *Table) Merge(hi, lo uint64) (*Table, error) {
	n := t.next()
	at := slices.IndexFunc(n.splits.all, func(s split) bool { return s.hi == hi && s.lo == lo })
	if at < 0 {
		return nil, fmt.Errorf("merge key %016x%016x: it is not split", hi, lo)
	}
	parent := &n.slots[hi>>n.shift]
	if parent.owner != parent.target {
		return nil, fmt.Errorf("merge key %016x%016x: its slot %d is moving", hi, lo, hi>>n.shift)
	}
	for _, c := range n.splits.all[at].children {
		if c.owner != c.target {
			return nil, fmt.Errorf("merge key %016x%016x: its child %d is moving", hi, lo, c.id)
		}
	}
	parent.epoch++
	if err := n.setSplits(slices.Delete(n.splits.all, at, at+1)); err != nil {
		return nil, fmt.Errorf("merge key: %w", err)
	}
	return n, nil
}

// Loosen makes every split key one whose events go to the least loaded of its partitions: its stream orders nothing any
// more but keys of other classes. A table without split keys, or in which all are like that, is returned as it is.
func (t *Table) Loosen() *Table {
	fixed := func(s split) bool { return !s.Spread && s.Class == event.AsStream }
	if !slices.ContainsFunc(t.splits.all, fixed) {
		return t
	}
	n := t.next()
	for i := range n.splits.all {
		n.splits.all[i].Spread = n.splits.all[i].Spread || fixed(n.splits.all[i])
	}
	n.splits = newSplits(n.splits.all)
	return n
}

// Restrict merges the keys that are split in a way in which a stream with this ordering has none, and abandons what is
// under way then. It is for a stream that starts, before its first event. A table without such keys is returned as it is.
func (t *Table) Restrict(o Ordering) (*Table, error) {
	n := t
	for _, s := range t.splits.all {
		if o == Unordered || o == BySource && !s.Spread {
			continue
		}
		var err error
		if n.held != nil {
			if n, err = n.Abandon(); err != nil {
				return nil, err
			}
		}
		if n, err = n.Merge(s.hi, s.lo); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// bear adds a child on each of the partitions.
func (t *Table) bear(s *split, partitions []int32) error {
	for _, p := range partitions {
		if !slices.Contains(t.active, p) {
			return fmt.Errorf("no active partition %d", p)
		}
		s.children = append(s.children, child{slot{1, uint8(p), uint8(p)}, t.nextChild})
		t.nextChild++
	}
	return nil
}
