package gateway

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/gateway/config"
	"github.com/headgate-io/headgate/partitioner"
)

// shownTable is a routing table as the admin API gives it.
type shownTable struct {
	Version    uint64           `json:"version"`
	Slots      int              `json:"slots"`
	Hash       string           `json:"hash"`
	Ordering   string           `json:"ordering"`
	Adaptive   shownAdaptive    `json:"adaptive"`
	Partitions []shownPartition `json:"partitions"`
	Splits     []shownSplit     `json:"splits"`
	Moving     []int32          `json:"moving"`
	UnderWay   []shownChange    `json:"under_way"` // of keys
	History    []happening      `json:"history"`
}

// shownAdaptive are the thresholds in force, which the stream's definition has for all gateways.
type shownAdaptive struct {
	On            bool   `json:"on"`
	MaxPartitions int    `json:"max_partitions"` // of one key
	Hold          string `json:"hold"`
	Fence         string `json:"fence"` // how order is kept over changes: seal, drain, or none
}

type shownPartition struct {
	ID     int     `json:"id"`
	Node   string  `json:"node"`
	Slots  int     `json:"slots"`
	Weight float64 `json:"weight"`
	State  string  `json:"state"`   // drained: it drains and has nothing left, neither in the table nor in this gateway's lane
	Wait   int     `json:"waiting"` // events that this gateway has for it and that are not confirmed
	Rate   float64 `json:"rate"`    // bytes a second that this gateway sends there, with 64 for each event
}

type shownSplit struct {
	ShownKey
	Fanout   int          `json:"fanout"`
	By       string       `json:"by"` // source: its events go by their source; load: to the least loaded
	Children []shownChild `json:"children"`
	Since    time.Time    `json:"since"`
	Hold     string       `json:"hold"` // how long it stays split at least
}

type shownChild struct {
	Slot      int32  `json:"slot"`
	Partition int32  `json:"partition"`
	Epoch     uint32 `json:"epoch"`
}

type shownChange struct {
	ShownKey
	Kind       string  `json:"kind"`
	Partitions []int32 `json:"partitions,omitempty"`
}

func (s *stream) describeTable() (json.RawMessage, error) {
	t, cfg := s.partitioner.Table(), &s.current.Load().config
	out := shownTable{Version: t.Version(), Slots: t.Slots(), Hash: t.HashKind().String(), Ordering: cfg.Ordering,
		Splits: []shownSplit{}, Moving: append([]int32{}, t.Moving()...), UnderWay: []shownChange{}, History: []happening{}}
	counts, f := t.Counts(), &figures{}
	if a := s.adaptive; a != nil {
		f = a.figures.Load()
		a.describe(&out, t, cfg)
	}
	loads, used := s.forwarder.LaneLoads(nil), t.Used()
	for id, p := range t.Partitions() {
		one := shownPartition{ID: id, Node: cfg.Backend, Slots: counts[id], Weight: p.Weight, State: p.State.String()}
		if id < len(loads) {
			one.Wait = loads[id].Waiting + loads[id].Inflight
		}
		if p.State == partitioner.Draining && !used[id] && one.Wait == 0 {
			one.State = "drained"
		}
		if id < len(f.partitions) {
			one.Rate = f.partitions[id]
		}
		out.Partitions = append(out.Partitions, one)
	}
	return json.Marshal(out)
}

// describe adds what only a table has that changes by itself.
func (a *adaptive) describe(out *shownTable, t *partitioner.Table, cfg *config.Stream) {
	out.Adaptive = shownAdaptive{On: a.mayPlan() && t.HashKind() != partitioner.Murmur2, MaxPartitions: len(t.Partitions()), Hold: time.Duration(cfg.Adaptive.Hold).String()}
	out.Adaptive.Fence = a.stream.fence(cfg)
	if most := cfg.Adaptive.MaxPartitions; most > 0 {
		out.Adaptive.MaxPartitions = min(out.Adaptive.MaxPartitions, most)
	}
	for _, split := range t.Splits() {
		out.Splits = append(out.Splits, a.shownSplit(&split))
	}
	for _, c := range t.Pending() {
		out.UnderWay = append(out.UnderWay, shownChange{a.names.show(c.Hi, c.Lo), c.Kind.String(), c.Partitions})
	}
	out.History = append(out.History, a.history.since(1)...)
	slices.Reverse(out.History) // the newest first
}

func (a *adaptive) shownSplit(s *partitioner.Split) shownSplit {
	out := shownSplit{ShownKey: a.names.show(s.Hi, s.Lo), Fanout: len(s.Children), By: "source",
		Since: time.Unix(0, int64(s.Born)).UTC(), Hold: s.Hold.String()}
	if s.Spread {
		out.By = "load"
	}
	for _, c := range s.Children {
		out.Children = append(out.Children, shownChild{c.Child, c.Partition, c.Epoch})
	}
	return out
}

// shownHotKeys are the heaviest keys as the admin API gives them.
type shownHotKeys struct {
	Stream string        `json:"stream"`
	Total  float64       `json:"total"`     // of all keys, a second
	Least  float64       `json:"threshold"` // no key that is not listed has more
	Keys   []shownHotKey `json:"keys"`
}

type shownHotKey struct {
	ShownKey
	Lower  float64 `json:"lower"` // bytes a second, with 64 for each event: at least
	Upper  float64 `json:"upper"` // at most
	Share  float64 `json:"share"` // of everything, at least
	State  string  `json:"state"` // whole, split, or limited: whole, and more is refused than Limit
	Fanout int     `json:"fanout"`
	Order  string  `json:"ordering"`        // that its events keep
	Limit  float64 `json:"limit,omitempty"` // bytes a second that its partition takes
}

// HotKeys returns the heaviest keys. See admin.Routing.
func (g *Gateway) HotKeys(_ context.Context, name string) (json.RawMessage, error) {
	s, err := g.find(name)
	if err != nil {
		return nil, err
	}
	out := shownHotKeys{Stream: name, Keys: []shownHotKey{}}
	if a := s.adaptive; a != nil {
		a.hotKeys(&out, s.partitioner.Table())
	}
	return json.Marshal(out)
}

func (a *adaptive) hotKeys(out *shownHotKeys, t *partitioner.Table) {
	heavy := a.figures.Load().heavy
	fanout := map[[2]uint64]int{}
	for _, s := range t.Splits() {
		fanout[[2]uint64{s.Hi, s.Lo}] = len(s.Children)
	}
	out.Total, out.Least = heavy.Total, heavy.Floor
	limits := a.stream.limits.Load()
	for i, k := range heavy.Keys {
		if i == shownKeys {
			out.Least = max(out.Least, k.Upper)
			break
		}
		one := shownHotKey{ShownKey: a.names.show(k.Hi, k.Lo), Lower: k.Lower, Upper: k.Upper, State: "whole", Fanout: 1}
		if heavy.Total > 0 {
			one.Share = k.Lower / heavy.Total
		}
		if n := fanout[[2]uint64{k.Hi, k.Lo}]; n > 0 {
			one.State, one.Fanout = "split", n
		}
		if one.Order = k.Class.String(); k.Class == event.AsStream {
			one.Order = a.stream.current.Load().config.Ordering
		}
		if limits != nil && limits.all[[2]uint64{k.Hi, k.Lo}] != nil {
			one.State, one.Limit = "limited", limits.all[[2]uint64{k.Hi, k.Lo}].Rate
		}
		out.Keys = append(out.Keys, one)
	}
}
