package gateway

import (
	"encoding/json"

	"github.com/headgate-io/headgate/partitioner"
)

// shownTable is a routing table as the admin API gives it.
type shownTable struct {
	Version    uint64           `json:"version"`
	Slots      int              `json:"slots"`
	Partitions []shownPartition `json:"partitions"`
	Splits     []struct{}       `json:"splits"` // keys are not split in this version
	Moving     []int32          `json:"moving"`
}

type shownPartition struct {
	ID     int     `json:"id"`
	Node   string  `json:"node"`
	Slots  int     `json:"slots"`
	Weight float64 `json:"weight"`
	State  string  `json:"state"`
}

func describeTable(t *partitioner.Table, backend string) (json.RawMessage, error) {
	out := shownTable{Version: t.Version(), Slots: t.Slots(), Splits: []struct{}{}, Moving: []int32{}}
	counts := t.Counts()
	for id, p := range t.Partitions() {
		out.Partitions = append(out.Partitions, shownPartition{ID: id, Node: backend, Slots: counts[id], Weight: p.Weight, State: p.State.String()})
	}
	for n := range int32(t.Slots()) {
		if t.MovingTo(n) >= 0 {
			out.Moving = append(out.Moving, n)
		}
	}
	return json.Marshal(out)
}
