package partitioner

import (
	"errors"
	"math"
	"time"
)

// storedLedger is a Ledger in the stored form.
type storedLedger struct {
	At     int64          `json:"at"`
	Load   float64        `json:"load"`
	Slots  float64        `json:"slots"`
	Merged []storedMerged `json:"merged,omitempty"`
}

type storedMerged struct {
	Hi   uint64 `json:"hi,string"`
	Lo   uint64 `json:"lo,string"`
	At   int64  `json:"at"`
	Hold int64  `json:"hold"`
}

const maxMilliseconds = math.MaxInt64 / int64(time.Millisecond)

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// storeLedger returns nil for one with nothing in it.
func storeLedger(l *Ledger) *storedLedger {
	if l.At == 0 && l.Load == 0 && l.Slots == 0 && len(l.Merged) == 0 {
		return nil
	}
	s := &storedLedger{At: l.At.Milliseconds(), Load: l.Load, Slots: l.Slots}
	for _, m := range l.Merged {
		s.Merged = append(s.Merged, storedMerged{m.Hi, m.Lo, m.At.Milliseconds(), m.Hold.Milliseconds()})
	}
	return s
}

func (t *Table) parseLedger(s *storedLedger) error {
	if s == nil {
		return nil
	}
	bad := !(s.Load >= 0 && s.Load <= budgetLoad) || !(s.Slots >= 0 && s.Slots <= budgetSlots) || len(s.Merged) > maxMerged
	bad = bad || s.At < 0 || s.At > maxMilliseconds
	t.ledger = Ledger{At: milliseconds(s.At), Load: s.Load, Slots: s.Slots}
	for _, m := range s.Merged {
		bad = bad || m.At < 0 || m.At > maxMilliseconds || m.Hold < 0 || m.Hold > maxMilliseconds
		t.ledger.Merged = append(t.ledger.Merged, Merged{m.Hi, m.Lo, milliseconds(m.At), milliseconds(m.Hold)})
	}
	if bad {
		return errors.New("its ledger is out of bounds")
	}
	return nil
}
