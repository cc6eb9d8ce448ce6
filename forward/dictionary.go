package forward

import (
	"bytes"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/sdk/wire"
)

// dictionary finds the routes of a whole frame at once, when it is sealed: event by event, as they come in, each
// would find its lane's table gone from the processor's cache.
type dictionary struct {
	routes     []wire.Route
	eventRoute []uint32
	epochs     []wire.SlotEpoch
	byTag      positions // route -> position in routes
	bySlot     positions // slot or child -> position in epochs
}

// fill gives the draft's metadata its routes, which are the dictionary's and views into the draft.
func (c *dictionary) fill(d *draft) {
	clear(c.routes) // views
	c.routes, c.eventRoute, c.epochs = c.routes[:0], c.eventRoute[:0], c.epochs[:0]
	c.byTag.reset(len(d.places))
	c.bySlot.reset(len(d.places))
	for i := range d.places {
		c.eventRoute = append(c.eventRoute, c.route(d, &d.places[i]))
	}
	d.meta.Routes, d.meta.EventRoute, d.meta.Epochs = c.routes, c.eventRoute, c.epochs
}

// route returns the position of an event's route in the dictionary.
func (c *dictionary) route(d *draft, p *place) uint32 {
	var key []byte
	if p.keySize >= 0 {
		key = d.text[p.key:][:p.keySize]
	}
	place, found := c.byTag.seek(p.tag, p.tag)
	for ; found; place, found = c.byTag.seek(place+1, p.tag) {
		at := c.byTag.at(place)
		r := &c.routes[at]
		if r.Slot == p.slot && r.Child == p.child && r.HasKey == (p.keySize >= 0) && bytes.Equal(r.Key, key) {
			return at
		}
	}
	c.byTag.put(place, p.tag, len(c.routes))
	route := wire.Route{Key: key, HasKey: p.keySize >= 0, Slot: p.slot, Child: p.child}
	if p.keySize > 0 {
		route.KeyAt = uint32(p.keyIn(d.raw.b[p.at:][:p.size], key) + 1)
	}
	c.routes = append(c.routes, route)
	c.epoch(p)
	return uint32(len(c.routes) - 1)
}

// keyIn returns where in the event's data its key is, -1 for nowhere.
func (p *place) keyIn(data, key []byte) int {
	if p.keyAt >= 0 {
		return int(p.keyAt)
	}
	return bytes.Index(data, key)
}

// epoch notes the epoch of the event's slot, or child slot. All events of a frame are routed by one table, so
// a slot has one epoch in it.
func (c *dictionary) epoch(p *place) {
	slot := p.slot
	if p.child != event.NoSlot {
		slot = p.child
	}
	if slot == event.NoSlot {
		return
	}
	tag := uint32(slot) // exact: no second look at the slot is needed
	place, found := c.bySlot.seek(tag, tag)
	if !found {
		c.bySlot.put(place, tag, len(c.epochs))
		c.epochs = append(c.epochs, wire.SlotEpoch{Slot: slot, Epoch: p.epoch})
	}
}
