package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// This file: which keys the events have and where they were routed to. A dictionary of routes, with keys that
// mostly are offsets into the events, and one byte per event that names its route.

func appendRoutes(dst []byte, m *Meta, raw []byte) []byte {
	slices.SortFunc(m.Epochs, func(a, b SlotEpoch) int { return int(a.Slot) - int(b.Slot) })
	if len(m.Epochs) > 0 {
		dst = appendEpochs(dst, m.Epochs)
	}
	if len(m.Routes) == 0 {
		return dst
	}
	dst, start := openColumn(dst, colKeys)
	dst = closeColumn(appendKeys(dst, m, raw), start)

	dst, start = openColumn(dst, colSlots)
	children := false
	for i := range m.Routes {
		dst = appendSlot(dst, m.Epochs, m.Routes[i].Slot)
		children = children || m.Routes[i].Child >= 0
	}
	dst = closeColumn(dst, start)

	if children {
		dst, start = openColumn(dst, colChildren)
		for i := range m.Routes {
			dst = appendSlot(dst, m.Epochs, m.Routes[i].Child)
		}
		dst = closeColumn(dst, start)
	}
	return appendEventRoute(dst, m.EventRoute)
}

func appendEpochs(dst []byte, epochs []SlotEpoch) []byte {
	dst, start := openColumn(dst, colEpochs)
	prev := int32(None)
	for _, e := range epochs {
		if e.Slot <= prev {
			panic("BUG: wire: an epoch of no slot, or two of one")
		}
		dst = binary.AppendUvarint(dst, uint64(e.Slot-prev))
		dst = binary.AppendUvarint(dst, uint64(e.Epoch))
		prev = e.Slot
	}
	return closeColumn(dst, start)
}

func (m *Meta) parseEpochs(r *reader) {
	slot := int64(None)
	for r.more() {
		distance := int64(r.atMost(math.MaxInt32 + 1))
		slot += distance
		if distance == 0 || slot > math.MaxInt32 {
			r.fail()
			return
		}
		m.Epochs = append(m.Epochs, SlotEpoch{Slot: int32(slot), Epoch: uint32(r.atMost(math.MaxUint32))})
	}
}

// Forms of a key in its column: keyNull; else 2*length + keyLiteral, then the bytes; or 2*length + keyInEvent,
// then the offset in the data of the event that introduces the route (see appendEventRoute).
const (
	keyNull    = 0
	keyLiteral = 1
	keyInEvent = 2
)

// appendKeys walks the events, if there are any, only as far as new routes turn up. Routes are written in their order,
// which is the order of their introduction; those that no event introduces come last and are literal.
func appendKeys(dst []byte, m *Meta, raw []byte) []byte {
	next := 0
	for _, route := range m.EventRoute {
		if next == len(m.Routes) || raw == nil {
			break
		}
		data, rest, err := NextEvent(raw, m.Framing)
		if err != nil {
			break // raw is not this frame's: literal keys are always right
		}
		raw = rest
		if int(route) == next {
			dst = appendKey(dst, &m.Routes[next], data)
			next++
		}
	}
	for ; next < len(m.Routes); next++ {
		dst = appendKey(dst, &m.Routes[next], nil)
	}
	return dst
}

func appendKey(dst []byte, r *Route, data []byte) []byte {
	if !r.HasKey {
		return append(dst, keyNull)
	}
	size := uint64(len(r.Key))
	if size > 0 {
		at := int(r.KeyAt) - 1
		if at < 0 {
			at = bytes.Index(data, r.Key)
		}
		if at >= 0 {
			return binary.AppendUvarint(binary.AppendUvarint(dst, 2*size+keyInEvent), uint64(at))
		}
	}
	return append(binary.AppendUvarint(dst, 2*size+keyLiteral), r.Key...)
}

func (m *Meta) parseKeys(r *reader) {
	for r.more() {
		route := Route{Slot: None, Child: None}
		form := r.uvarint()
		switch size := (form - 1) / 2; {
		case form == keyNull:
		case form%2 == keyLiteral:
			route.HasKey, route.Key = true, r.bytes(size)
		default:
			route.HasKey, route.size = true, uint32(min(size, math.MaxUint32))
			route.off = uint32(r.atMost(math.MaxUint32))
		}
		m.Routes = append(m.Routes, route)
	}
}

// ResolveKeys fills the keys that lie in the events; raw is the decompressed data of the frame.
func (m *Meta) ResolveKeys(raw []byte) error {
	next := 0
	for i, route := range m.EventRoute {
		if next == len(m.Routes) {
			break
		}
		data, rest, err := NextEvent(raw, m.Framing)
		if err != nil {
			return fmt.Errorf("event %d of the frame: %w", i, err)
		}
		raw = rest
		if int(route) != next {
			continue
		}
		if !m.Routes[next].resolve(data) {
			return fmt.Errorf("event %d of the frame: %w: its key is not in it", i, ErrMalformed)
		}
		next++
	}
	for ; next < len(m.Routes); next++ {
		if m.Routes[next].size > 0 {
			return fmt.Errorf("metadata block: %w: no event introduces route %d", ErrMalformed, next)
		}
	}
	return nil
}

func (r *Route) resolve(data []byte) bool {
	if r.size == 0 {
		return true
	}
	end := uint64(r.off) + uint64(r.size)
	if end > uint64(len(data)) {
		return false
	}
	r.Key = data[r.off:end:end]
	return true
}

// appendSlot writes 0 for None, 2*i+1 for the slot of epochs[i], which is one byte for up to 64 slots a frame,
// and 2*slot+2 for a slot that is not among them (the parent of a child).
func appendSlot(dst []byte, epochs []SlotEpoch, slot int32) []byte {
	if slot < 0 {
		return append(dst, 0)
	}
	if i, ok := findSlot(epochs, slot); ok {
		return binary.AppendUvarint(dst, 2*uint64(i)+1)
	}
	return binary.AppendUvarint(dst, 2*uint64(slot)+2)
}

func (m *Meta) parseSlot(r *reader) int32 {
	v := r.uvarint()
	switch {
	case v == 0:
		return None
	case v%2 == 1 && v/2 < uint64(len(m.Epochs)):
		return m.Epochs[v/2].Slot
	case v%2 == 0 && v/2-1 <= math.MaxInt32:
		return int32(v/2 - 1)
	}
	r.fail()
	return None
}

// appendEventRoute relies on dictionaries being filled in order of first use, where each first use is one
// byte, but is right for any order: an event introduces route n when it names it and the routes before n
// have been introduced by earlier events.
func appendEventRoute(dst []byte, eventRoute []uint32) []byte {
	dst, start := openColumn(dst, colEventRoute)
	var next uint32
	for _, route := range eventRoute {
		if route == next {
			dst = append(dst, 0)
			next++
		} else {
			dst = binary.AppendUvarint(dst, uint64(route)+1)
		}
	}
	return closeColumn(dst, start)
}

func (m *Meta) parseEventRoute(r *reader) {
	next, routes := uint64(0), uint64(len(m.Routes))
	for r.more() {
		route := next
		if v := r.uvarint(); v > 0 {
			route = v - 1
		}
		if route >= routes {
			r.fail()
			return
		}
		if route == next {
			next++
		}
		m.EventRoute = append(m.EventRoute, uint32(route))
	}
}
