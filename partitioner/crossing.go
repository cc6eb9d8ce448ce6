package partitioner

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// A change of who gets the events of a key or slot that have an order takes two tables: one that begins it, under which
// these events are held back, and one that finishes or abandons it, once all that came before is where it belongs.

// held is what a table holds back.
type held struct {
	slots []int32 // and children by id, in order
	keys  [][2]uint64
}

func (h *held) has(hi, lo uint64, at *Place) bool {
	for _, k := range h.keys {
		if k[0] == hi && k[1] == lo {
			return true
		}
	}
	id := at.Slot
	if at.Child >= 0 {
		id = at.Child
	}
	_, ok := slices.BinarySearch(h.slots, id)
	return ok
}

// hold computes what the table holds back.
func (t *Table) hold() {
	h := held{slots: t.Moving()}
	slices.Sort(h.slots)
	for _, c := range t.pending {
		h.keys = append(h.keys, [2]uint64{c.Hi, c.Lo})
	}
	if t.held = &h; len(h.slots)+len(h.keys) == 0 {
		t.held = nil
	}
}

// Begin returns the next table for a plan whose keys have an order: what changes nobody's order is in force with it, the
// rest is prepared, and the events of what is between two owners are held back until Finish or Abandon.
func (t *Table) Begin(p Plan) (*Table, error) {
	if t.held != nil {
		return nil, errors.New("begin: something else is under way")
	}
	if _, err := t.Apply(p); err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	n := t
	var pending []Change
	for _, c := range p.Changes {
		switch c.Kind {
		case SplitKey, GrowKey, MergeKey:
			c.Reason = ""
			pending = append(pending, c)
			continue
		}
		next, err := n.apply(c)
		if err != nil {
			return nil, fmt.Errorf("begin: %w", err)
		}
		n = next
	}
	if p.Ledger != nil {
		n = n.WithLedger(*p.Ledger)
	}
	n = n.next()
	n.version, n.pending = t.version+1, pending
	n.hold()
	if err := n.checkPending(); err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	return n, nil
}

// checkPending refuses what is under way when it can't be ended, or when a key has more than one change.
func (t *Table) checkPending() error {
	for i, c := range t.pending {
		if slices.ContainsFunc(t.pending[:i], func(o Change) bool { return o.Hi == c.Hi && o.Lo == c.Lo }) {
			return fmt.Errorf("key %016x%016x changes twice", c.Hi, c.Lo)
		}
	}
	if _, err := t.Finish(nil); err != nil {
		return err
	}
	_, err := t.Abandon()
	return err
}

// Holds reports whether the table holds back the events of a key of this hash that would go to at.
func (t *Table) Holds(hi, lo uint64, at Place) bool {
	if t.held == nil {
		return false
	}
	return t.held.has(hi, lo, &at)
}

// UnderWay reports whether the table holds something back.
func (t *Table) UnderWay() bool { return t.held != nil }

// Pending returns the changes of keys that are prepared.
func (t *Table) Pending() []Change { return slices.Clone(t.pending) }

// Finish returns the next table, in which all that was begun has happened; marks are where the lanes end that were left.
// The table remembers them: what comes first to a new owner names them as its predecessors.
func (t *Table) Finish(marks []Predecessor) (*Table, error) {
	n, err := t.Commit(t.Moving()...)
	if err != nil {
		return nil, fmt.Errorf("finish: %w", err)
	}
	for _, c := range t.pending {
		if n, err = n.apply(c); err != nil {
			return nil, fmt.Errorf("finish: %w", err)
		}
	}
	n = n.next()
	n.version, n.pending, n.held = t.version+1, nil, nil
	for _, m := range marks {
		n.remember(m)
	}
	return n, nil
}

// Abandon returns the next table, in which nothing of what was begun has happened. What was held back goes on under a new
// epoch, never under the old one.
func (t *Table) Abandon() (*Table, error) {
	n, err := t.Abort(t.Moving()...)
	if err != nil {
		return nil, fmt.Errorf("abandon: %w", err)
	}
	n = n.next()
	n.version, n.pending, n.held = t.version+1, nil, nil
	for _, c := range t.pending {
		if s := n.splits.find(c.Hi, c.Lo); s != nil {
			for i := range s.children {
				s.children[i].epoch++
			}
		}
		n.slots[c.Hi>>n.shift].epoch++
	}
	return n, nil
}

// Crossing is two partitions that what is under way goes from and to.
type Crossing struct{ From, To int32 }

// Crossings returns which partitions are left, and for which others, by what is under way; in order and each once.
func (t *Table) Crossings() []Crossing {
	var all []Crossing
	add := func(from, to uint8) {
		if from != to {
			all = append(all, Crossing{int32(from), int32(to)})
		}
	}
	for _, id := range t.Moving() {
		s := t.byID(id)
		add(s.owner, s.target)
	}
	for _, c := range t.pending {
		parent, s := &t.slots[c.Hi>>t.shift], t.splits.find(c.Hi, c.Lo)
		switch c.Kind {
		case SplitKey:
			for _, p := range c.Partitions {
				add(parent.owner, uint8(p))
			}
		case GrowKey:
			for i, p := range c.Partitions {
				add(s.children[i%len(s.children)].owner, uint8(p))
			}
		case MergeKey:
			for i := range s.children {
				add(s.children[i].owner, parent.target)
			}
		}
	}
	slices.SortFunc(all, func(a, b Crossing) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	return slices.Compact(all)
}

// Predecessor says that what a lane of Gateway had for partition From, up to the event of that number, comes before what
// is new in partition To.
type Predecessor struct {
	From, To int32
	Gateway  string
	Number   uint64
}

// MaxPredecessors is how many of them there may be that no frame names yet: a table that has them remembers all, since what is
// forgotten lets a reader take things the other way round without a word. What would need more must not begin.
const MaxPredecessors = 1024

// mostPredecessors is what a stored table may have: a change that was under way at a crash may go beyond MaxPredecessors.
const mostPredecessors = 1 << 16

// Predecessors returns what is remembered, of each pair of partitions the last.
func (t *Table) Predecessors() []Predecessor { return slices.Clone(t.after) }

// remembers tells that what comes to a partition is known to be behind m of another one: a lower number must not take its place.
func (t *Table) remembers(from, to int32, m Predecessor) bool {
	return slices.ContainsFunc(t.after, func(o Predecessor) bool {
		return o.From == from && o.To == to && o.Gateway == m.Gateway && o.Number >= m.Number
	})
}

// forget lets a table that is nobody else's yet remember only those that are told of.
func (t *Table) forget(but []Predecessor) {
	t.after = slices.DeleteFunc(slices.Clone(t.after), func(m Predecessor) bool {
		return !slices.ContainsFunc(but, func(o Predecessor) bool {
			return o.From == m.From && o.To == m.To && o.Gateway == m.Gateway && o.Number <= m.Number
		})
	})
}

// remember adds a predecessor to a table that is nobody else's yet.
func (t *Table) remember(m Predecessor) {
	t.after = slices.DeleteFunc(slices.Clone(t.after), func(o Predecessor) bool {
		return o.From == m.From && o.To == m.To && o.Gateway == m.Gateway
	})
	t.after = append(t.after, m)
}
