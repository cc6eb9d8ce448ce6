package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/headgate-io/headgate/control"
	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/partitioner"
)

// openTable reads the stream's routing table, or makes its first one.
func (g *Gateway) openTable(ctx context.Context, name string, secret [16]byte, partitions int) (*partitioner.Table, error) {
	doc, err := g.store.Tables.Read(ctx, name)
	if errors.Is(err, control.ErrNotFound) {
		table, err := partitioner.NewTable(secret, partitioner.SlotsFor(partitions), partitioner.Equal(partitions))
		if err != nil {
			return nil, err
		}
		text, err := table.MarshalJSON()
		if err != nil {
			return nil, err
		}
		_, err = g.store.Tables.Write(ctx, name, text, 0)
		return table, err
	}
	if err != nil {
		return nil, fmt.Errorf("read routing table: %w", err)
	}
	table, err := partitioner.ParseTable(secret, doc.Value)
	if err != nil {
		return nil, fmt.Errorf("read routing table: %w", err)
	}
	if n := len(table.Partitions()); n != partitions {
		return nil, event.Problemf(event.PartitionsFixed, "partitions: the stream was made with %d and cannot have %d; choose %[1]d, or another stream", n, partitions)
	}
	return table, nil
}

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
