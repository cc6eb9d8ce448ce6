package partitioner

import (
	"errors"
	"fmt"

	"github.com/headgate-io/headgate/event"
)

// storedChange is a prepared change of a key in the stored form.
type storedChange struct {
	Kind       string  `json:"kind"`
	Hi         uint64  `json:"hi,string"`
	Lo         uint64  `json:"lo,string"`
	Partitions []int32 `json:"partitions,omitempty"`
	Spread     bool    `json:"spread,omitempty"`
	Born       int64   `json:"born,omitempty"`
	Hold       int64   `json:"hold,omitempty"`
	Class      string  `json:"class,omitempty"`
}

// storedMark is a Predecessor in the stored form.
type storedMark struct {
	From    int32  `json:"from"`
	To      int32  `json:"to"`
	Gateway string `json:"gateway"`
	Number  uint64 `json:"number,string"`
}

func storePending(all []Change) (out []storedChange) {
	for _, c := range all {
		out = append(out, storedChange{
			Kind: c.Kind.String(), Hi: c.Hi, Lo: c.Lo, Partitions: c.Partitions, Spread: c.Terms.Spread,
			Born: c.Terms.Born.Milliseconds(), Hold: c.Terms.Hold.Milliseconds(), Class: c.Terms.Class.String(),
		})
	}
	return out
}

func storeMarks(all []Predecessor) (out []storedMark) {
	for _, m := range all {
		out = append(out, storedMark{m.From, m.To, m.Gateway, m.Number})
	}
	return out
}

// parseCrossing reads what is under way, and refuses what could not be finished.
func (t *Table) parseCrossing(s *stored) error {
	if len(s.Pending) > maxChildren || len(s.After) > mostPredecessors {
		return errors.New("more is under way than there can be")
	}
	for _, c := range s.Pending {
		kind, ok := parseKind(c.Kind)
		class, known := event.ParseClass(c.Class)
		if !ok || !known || kind != SplitKey && kind != GrowKey && kind != MergeKey || min(c.Born, c.Hold) < 0 || max(c.Born, c.Hold) > maxMilliseconds {
			return fmt.Errorf("a change %q is under way", c.Kind)
		}
		t.pending = append(t.pending, Change{Kind: kind, Hi: c.Hi, Lo: c.Lo, Partitions: c.Partitions,
			Terms: SplitTerms{c.Spread, milliseconds(c.Born), milliseconds(c.Hold), class}})
	}
	for _, m := range s.After {
		if n := int32(len(t.partitions)); m.From < 0 || m.To < 0 || m.From >= n || m.To >= n || m.Number == 0 || m.Gateway == "" {
			return fmt.Errorf("predecessor %d of partition %d", m.From, m.To)
		}
		t.after = append(t.after, Predecessor{m.From, m.To, m.Gateway, m.Number})
	}
	if t.hold(); t.held == nil {
		return nil
	}
	return t.checkPending()
}
