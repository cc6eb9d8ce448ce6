package gateway

import (
	"slices"
	"sync"
	"time"

	"github.com/headgate-io/headgate/partitioner"
)

// What became of a change.
const (
	done      = "done"
	abandoned = "abandoned" // what it leaves was not confirmed in time: all is as it was
)

// happening is what is told of a change of a table, or of a reason why nothing changes.
type happening struct {
	Number       uint64    `json:"number"` // from 1, since the start of the gateway
	Time         time.Time `json:"time"`
	Stream       string    `json:"stream"`
	TableVersion uint64    `json:"table_version"`
	Kind         string    `json:"kind"` // of a partitioner.Change, or limit, unlimit, note
	Outcome      string    `json:"outcome,omitempty"`
	*ShownKey              // of split, grow, merge, limit and unlimit
	Slot         *int32    `json:"slot,omitempty"`
	From         *int32    `json:"from,omitempty"`
	To           *int32    `json:"to,omitempty"`
	Partitions   []int32   `json:"partitions,omitempty"`
	Weight       float64   `json:"weight,omitempty"`
	Limit        float64   `json:"limit,omitempty"` // of a key, bytes a second
	Reason       string    `json:"reason"`
}

// historySize is how many happenings are kept of a stream; the table itself says what is in force.
const historySize = 256

// history keeps the last happenings of a stream.
type history struct {
	mu   sync.Mutex
	all  []happening
	last uint64 // number of the last one
}

func (h *history) add(e happening) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last++
	e.Number = h.last
	h.all = append(h.all[max(0, len(h.all)+1-historySize):], e)
}

// since returns the happenings from a number on.
func (h *history) since(number uint64) []happening {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := slices.IndexFunc(h.all, func(e happening) bool { return e.Number >= number })
	if at < 0 {
		return nil
	}
	return slices.Clone(h.all[at:])
}

// record tells what became of changes.
func (a *adaptive) record(t *partitioner.Table, changes []partitioner.Change, outcome string) {
	if a.meter != nil { // a key may have been too fast for its name
		a.names.learn(a.meter, t, &a.figures.Load().heavy, a.stream.limits.Load())
	}
	for _, c := range changes {
		if outcome == done {
			a.counts.count(c.Kind)
		} else {
			a.counts.abandoned.Add(1)
		}
		a.history.add(a.happening(t, &c, outcome))
		a.log.Info("routing table changed", "version", t.Version(), "change", c.String(), "outcome", outcome)
	}
}

// note tells why nothing changes.
func (a *adaptive) note(t *partitioner.Table, reason string) {
	a.history.add(happening{Time: time.Now().UTC(), Stream: a.stream.name, TableVersion: t.Version(), Kind: "note", Reason: reason})
	a.log.Warn("routing table stays", "reason", reason)
}

func (a *adaptive) happening(t *partitioner.Table, c *partitioner.Change, outcome string) happening {
	e := happening{Time: time.Now().UTC(), Stream: a.stream.name, TableVersion: t.Version(), Kind: c.Kind.String(), Outcome: outcome,
		Partitions: c.Partitions, Reason: c.Reason}
	switch c.Kind {
	case partitioner.MoveSlot:
		e.Slot, e.From, e.To = &c.Slot, &c.Partition, &c.To
	case partitioner.SplitKey, partitioner.GrowKey, partitioner.MergeKey:
		key := a.names.show(c.Hi, c.Lo)
		e.ShownKey = &key
	default:
		e.Partitions, e.Weight = []int32{c.Partition}, c.Weight
	}
	return e
}
