package gateway

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/bits"
	"unicode/utf8"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/partitioner"
)

// shownPlace is where the events of a key go, as the admin API gives it.
type shownPlace struct {
	Stream       string      `json:"stream"`
	Key          *string     `json:"key"`
	KeyBase64    string      `json:"key_base64,omitempty"`
	Hash         string      `json:"hash,omitempty"` // the upper 64 bits, in hexadecimal digits
	Slot         *int32      `json:"slot"`
	Slots        int         `json:"slots"`
	Child        *int32      `json:"child"` // of a split key
	Partition    *int32      `json:"partition"`
	Epoch        uint32      `json:"epoch,omitempty"`
	TableVersion uint64      `json:"table_version"`
	Node         string      `json:"node"`
	Split        *placeSplit `json:"split,omitempty"`
	Ordering     string      `json:"ordering"`         // that the events of the key keep
	Parked       bool        `json:"parked,omitempty"` // it waits for a change of the table to end
	Why          string      `json:"why"`
}

// placeSplit is how the key is split.
type placeSplit struct {
	Fanout   int          `json:"fanout"`
	By       string       `json:"by"` // source or load
	Children []shownChild `json:"children"`
}

// Explain says where the events of a key go. See admin.Routing.
func (g *Gateway) Explain(_ context.Context, name string, key, source []byte, ordering string) (json.RawMessage, error) {
	s, err := g.find(name)
	if err != nil {
		return nil, err
	}
	table, def := s.partitioner.Table(), s.current.Load()
	class, err := def.settings.Class(ordering)
	if err != nil {
		return nil, err
	}
	out := shownPlace{Stream: name, Ordering: cmp.Or(class.String(), def.config.Ordering), Slots: table.Slots(), TableVersion: table.Version(), Node: def.config.Backend}
	if key == nil {
		out.Why = "events without a key have no slot: they go to one active partition, and after 64 KiB to the next"
		return json.Marshal(out)
	}
	if text := string(key); utf8.ValidString(text) {
		out.Key = &text
	} else {
		out.KeyBase64 = base64.StdEncoding.EncodeToString(key)
	}
	hi, lo, at := table.Locate(class, key, source)
	out.Hash, out.Slot, out.Partition, out.Epoch = fmt.Sprintf("%016x", hi), &at.Slot, &at.Partition, at.Epoch
	if at.Child != event.NoSlot {
		out.Child = &at.Child
	}
	out.Why = whyThere(table, at)
	if split, ok := splitOf(table, hi, lo); ok {
		shown := s.adaptive.shownSplit(&split)
		out.Split = &placeSplit{shown.Fanout, shown.By, shown.Children}
		if split.Spread {
			out.Why = fmt.Sprintf("the key is split over %d partitions, and each event goes to the one of them that this gateway has sent least; named is one of them", shown.Fanout)
		}
	}
	if class != event.AsStream {
		out.Why += fmt.Sprintf("; with Headgate-Ordering: %s it is another key than without", class)
	}
	if out.Parked = table.Holds(hi, lo, at); out.Parked {
		out.Why += "; it is between two partitions just now: its events wait until what is on its way is confirmed"
	}
	return json.Marshal(out)
}

// splitOf returns the split of a key, when it has one.
func splitOf(t *partitioner.Table, hi, lo uint64) (partitioner.Split, bool) {
	for _, s := range t.Splits() {
		if s.Hi == hi && s.Lo == lo {
			return s, true
		}
	}
	return partitioner.Split{}, false
}

func whyThere(t *partitioner.Table, at partitioner.Place) string {
	slot := fmt.Sprintf("the first %d bits of the hash are slot %d of %d", bits.TrailingZeros(uint(t.Slots())), at.Slot, t.Slots())
	if at.Child == event.NoSlot {
		return fmt.Sprintf("%s, which table %d gives to partition %d (epoch %d)", slot, t.Version(), at.Partition, at.Epoch)
	}
	return fmt.Sprintf("%s; the key is split, and table %d gives events of this source to its child %d on partition %d (epoch %d)",
		slot, t.Version(), at.Child, at.Partition, at.Epoch)
}
