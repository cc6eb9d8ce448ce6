package partitioner

import (
	"slices"
	"time"
)

// Ledger is what the planner has spent and must remember, kept in the table so that it survives a change of who plans.
type Ledger struct {
	At     time.Duration // of what is spent: since the epoch of Unix, in whole milliseconds; 0: never moved anything
	Load   float64       // share of the traffic that was moved and not yet forgiven, 0 to budgetLoad
	Slots  float64       // share of the slots that were moved and not yet forgiven, 0 to budgetSlots
	Merged []Merged      // the newest last
}

// Merged is a key that was split once: when it is split again soon it stays split for longer.
type Merged struct {
	Hi, Lo uint64
	At     time.Duration // when it was merged
	Hold   time.Duration // the hold that it had
}

// maxMerged bounds what is remembered of keys that are merged; the oldest are forgotten first.
const maxMerged = 128

// Ledger returns what the planner has to remember.
func (t *Table) Ledger() Ledger {
	l := t.ledger
	l.Merged = slices.Clone(l.Merged)
	return l
}

// WithLedger returns the next table with l.
func (t *Table) WithLedger(l Ledger) *Table {
	n := t.next()
	n.ledger = l
	n.ledger.Merged = slices.Clone(l.Merged[max(0, len(l.Merged)-maxMerged):])
	return n
}

// remembered is the hold of a key that was merged.
func (l *Ledger) remembered(hi, lo uint64) (Merged, bool) {
	for _, m := range slices.Backward(l.Merged) {
		if m.Hi == hi && m.Lo == lo {
			return m, true
		}
	}
	return Merged{}, false
}

// remember notes a merged key, once.
func (l *Ledger) remember(m Merged) {
	l.Merged = slices.DeleteFunc(slices.Clone(l.Merged), func(old Merged) bool { return old.Hi == m.Hi && old.Lo == m.Lo })
	l.Merged = append(l.Merged, m)
	l.Merged = l.Merged[max(0, len(l.Merged)-maxMerged):]
}
