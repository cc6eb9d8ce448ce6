package partitioner

import (
	"fmt"
	"strings"
)

// Kind says what a Change does.
type Kind uint8

// The kinds of changes.
const (
	MoveSlot          Kind = iota // a slot or child begins to move to another partition
	SplitKey                      // a key gets child slots
	GrowKey                       // a split key gets more child slots
	MergeKey                      // a split key goes back to its slot
	AddPartition                  // there is one partition more
	ActivatePartition             // a draining partition takes part again
	DrainPartition                // a partition gets nothing new and is emptied
	SetWeight                     // a partition counts as stronger or weaker
)

// String returns the word used in the stored form and in answers.
func (k Kind) String() string {
	return [...]string{"move", "split", "grow", "merge", "add_partition", "activate_partition", "drain_partition", "weight"}[k]
}

func parseKind(s string) (Kind, bool) {
	for k := range SetWeight + 1 {
		if k.String() == s {
			return k, true
		}
	}
	return 0, false
}

// Change is one change of a table and the reason for it.
type Change struct {
	Kind       Kind
	Hi, Lo     uint64  // SplitKey, GrowKey, MergeKey: the Hash of the key
	Slot       int32   // MoveSlot: id of a slot or child
	Partition  int32   // MoveSlot: from; the partition kinds: which
	To         int32   // MoveSlot
	Partitions []int32 // SplitKey: of all children; GrowKey: of the new ones
	Terms      SplitTerms
	Weight     float64
	Reason     string // with its figures
}

// String is a line of text: what, then why.
func (c Change) String() string {
	key := fmt.Sprintf("%016x%016x", c.Hi, c.Lo)
	switch c.Kind {
	case MoveSlot:
		return fmt.Sprintf("move slot %d from %d to %d: %s", c.Slot, c.Partition, c.To, c.Reason)
	case SplitKey:
		return fmt.Sprintf("split key %s over %s, hold %v: %s", key, ids(c.Partitions), c.Terms.Hold, c.Reason)
	case GrowKey:
		return fmt.Sprintf("grow key %s by %s: %s", key, ids(c.Partitions), c.Reason)
	case MergeKey:
		return fmt.Sprintf("merge key %s: %s", key, c.Reason)
	case AddPartition:
		return fmt.Sprintf("add partition %d: %s", c.Partition, c.Reason)
	case ActivatePartition:
		return fmt.Sprintf("activate partition %d: %s", c.Partition, c.Reason)
	case DrainPartition:
		return fmt.Sprintf("drain partition %d: %s", c.Partition, c.Reason)
	}
	return fmt.Sprintf("weight of partition %d is %.3f: %s", c.Partition, c.Weight, c.Reason)
}

func ids(all []int32) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(all), " ", ","), "[]")
}

// Plan is what a planner wants done now.
type Plan struct {
	Changes []Change
	Ledger  *Ledger // what it will have spent then, nil: as before
	Limits  []Limit // that are new or have changed
	Notes   []string
}

// String is a line for each change and note.
func (p Plan) String() string {
	var b strings.Builder
	for _, c := range p.Changes {
		fmt.Fprintln(&b, c)
	}
	for _, l := range p.Limits {
		fmt.Fprintln(&b, l)
	}
	for _, n := range p.Notes {
		fmt.Fprintln(&b, "note:", n)
	}
	return b.String()
}

// Apply returns the next version of the table with all changes of a plan; the slots and children that it moves are
// prepared and go on to Commit or Abort. A plan with nothing in it returns t.
func (t *Table) Apply(p Plan) (*Table, error) {
	n := t
	for _, c := range p.Changes {
		next, err := n.apply(c)
		if err != nil {
			return nil, err
		}
		n = next
	}
	if p.Ledger != nil {
		n = n.WithLedger(*p.Ledger)
	}
	if n != t {
		n.version = t.version + 1
	}
	return n, nil
}

func (t *Table) apply(c Change) (*Table, error) {
	switch c.Kind {
	case MoveSlot:
		return t.Prepare(c.To, c.Slot)
	case SplitKey:
		return t.SplitOn(c.Hi, c.Lo, c.Partitions, c.Terms)
	case GrowKey:
		return t.Grow(c.Hi, c.Lo, c.Partitions)
	case MergeKey:
		return t.Merge(c.Hi, c.Lo)
	case AddPartition:
		return t.AddPartition(c.Weight)
	case ActivatePartition:
		return t.SetState(c.Partition, Active)
	case DrainPartition:
		return t.SetState(c.Partition, Draining)
	case SetWeight:
		return t.SetWeight(c.Partition, c.Weight)
	}
	return nil, fmt.Errorf("change of kind %d is not known", c.Kind)
}

// Moving returns the slots and children that are on their way.
func (t *Table) Moving() []int32 {
	var all []int32
	for n, s := range t.slots {
		if s.owner != s.target {
			all = append(all, int32(n))
		}
	}
	for _, s := range t.splits.all {
		for _, c := range s.children {
			if c.owner != c.target {
				all = append(all, c.id)
			}
		}
	}
	return all
}
