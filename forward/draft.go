package forward

import (
	"bytes"
	"encoding/binary"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/sdk/wire"
)

// draft is the open part of a frame: its events in their framing, and the columns of its metadata. All its
// methods run under the lane's lock, and the bytes they are given are copied.
type draft struct {
	raw    *buffer
	meta   wire.Meta
	text   []byte      // what the metadata's slices point into; older pieces stay valid when it grows
	pairs  []wire.Attr // the attributes of all events, likewise
	routes table       // route -> position in meta.Routes
	slots  table       // slot or child -> position in meta.Epochs
}

// open starts a frame of about n bytes.
func (d *draft) open(n int, framing wire.Framing, version uint64) {
	d.raw = take(n)
	d.meta.Reset()
	d.meta.Framing, d.meta.TableVersion = framing, version
	d.routes.clear()
	d.slots.clear()
}

// recycle gives the draft's memory back.
func (d *draft) recycle() {
	give(d.raw)
	d.raw = nil
	d.meta.Reset()
	d.text = d.text[:0]
	clear(d.pairs)
	d.pairs = d.pairs[:0]
	drafts.Put(d)
}

// request says that the last n events came with b.
func (d *draft) request(b *event.Batch, n int) {
	d.meta.Requests = append(d.meta.Requests, wire.Request{
		Count: uint32(n), Time: b.Arrived, ID: keep(d, b.ID),
		TraceParent: keep(d, b.TraceParent), Chain: keep(d, b.Chain), Source: keep(d, b.Producer),
	})
}

// add appends an event.
func (d *draft) add(e *event.Event) {
	m := &d.meta
	if n := len(e.Data) + binary.MaxVarintLen64; cap(d.raw.b)-len(d.raw.b) < n {
		d.raw = grow(d.raw, n)
	}
	d.raw.b = wire.AppendEvent(d.raw.b, e.Data, m.Framing)
	m.EventRoute = append(m.EventRoute, d.route(e))
	if e.Time != 0 || len(m.Times) > 0 {
		m.Times = append(padded(m.Times, len(m.EventRoute)-1), e.Time)
	}
	if len(e.ID) > 0 || len(m.IDs) > 0 {
		m.IDs = append(padded(m.IDs, len(m.EventRoute)-1), keep(d, e.ID))
	}
	if len(e.Attrs) > 0 || len(m.Attrs) > 0 {
		m.Attrs = append(padded(m.Attrs, len(m.EventRoute)-1), d.attrs(e.Attrs))
	}
}

// padded extends a column that begins late with zero values up to n.
func padded[T any](column []T, n int) []T {
	var zero T
	for len(column) < n {
		column = append(column, zero)
	}
	return column
}

// route returns the position of the event's route in the dictionary.
func (d *draft) route(e *event.Event) uint32 {
	tag := uint32(e.Hash) // the low bits: the high ones name the slot, of which a lane has few
	place, found := d.routes.seek(tag, tag)
	for ; found; place, found = d.routes.seek(place+1, tag) {
		at := d.routes.entries[place].at
		if r := &d.meta.Routes[at]; sameRoute(r, e) {
			return at
		}
	}
	at := len(d.meta.Routes)
	route := wire.Route{HasKey: e.HasKey, Slot: e.Slot, Child: e.Child}
	if e.HasKey {
		route.Key = keep(d, e.Key)
	}
	d.meta.Routes = append(d.meta.Routes, route)
	d.routes.put(place, tag, at)
	d.epoch(e)
	return uint32(at)
}

func sameRoute(r *wire.Route, e *event.Event) bool {
	return r.Slot == e.Slot && r.Child == e.Child && r.HasKey == e.HasKey && (!e.HasKey || bytes.Equal(r.Key, e.Key))
}

// epoch notes the epoch of the event's slot, or child slot. All events of a frame are routed by one table, so
// a slot has one epoch in it.
func (d *draft) epoch(e *event.Event) {
	slot := e.Slot
	if e.Child != event.NoSlot {
		slot = e.Child
	}
	if slot == event.NoSlot {
		return
	}
	tag := uint32(slot) // exact: no second look at the slot is needed
	place, found := d.slots.seek(tag, tag)
	if !found {
		d.slots.put(place, tag, len(d.meta.Epochs))
		d.meta.Epochs = append(d.meta.Epochs, wire.SlotEpoch{Slot: slot, Epoch: e.Epoch})
	}
}

func (d *draft) attrs(attrs []event.Attr) []wire.Attr {
	if len(attrs) == 0 {
		return nil
	}
	from := len(d.pairs)
	for _, a := range attrs {
		d.pairs = append(d.pairs, wire.Attr{Name: keep(d, a.Name), Value: keep(d, a.Value)})
	}
	return d.pairs[from:len(d.pairs):len(d.pairs)]
}

// keep copies p into the frame's text; what is empty becomes nil.
func keep[T string | []byte](d *draft, p T) []byte {
	if len(p) == 0 {
		return nil
	}
	from := len(d.text)
	d.text = append(d.text, p...)
	return d.text[from:len(d.text):len(d.text)]
}
