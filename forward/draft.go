package forward

import (
	"bytes"
	"encoding/binary"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/sdk/wire"
)

// draft is the open part of a frame: its events in their framing, and what its metadata will be made of. All its
// methods run under the lane's lock, and the bytes they are given are copied.
type draft struct {
	raw    *buffer
	limit  int         // of the bytes of a frame
	meta   wire.Meta   // but for the routes, which a dictionary finds when the frame is sealed
	places []place     // one per event
	text   []byte      // what the metadata's slices point into; older pieces stay valid when it grows
	pairs  []wire.Attr // the attributes of all events, likewise
	labels int         // bytes of all ids and attributes
	common int         // behind where in the text the key begins that events of the request being added share; 0: not there yet
}

// place is where an event lies and where it was routed to.
type place struct {
	tag         uint32 // equal for equal keys, and mostly for these alone
	slot, child int32
	epoch       uint32
	at, size    uint32 // where its data lies in the raw events
	key         uint32 // where its key lies in the text: all keys close together, as looking them up needs them
	keySize     int32  // keyless for a null key
	keyAt       int32  // where its key lies in its data, -1 for not known
}

const keyless = -1

// open starts a frame of about n bytes of limit.
func (d *draft) open(n, limit int, framing wire.Framing, version uint64) {
	d.raw, d.limit, d.labels = take(bufferSize(n, limit)), limit, 0
	d.meta.Framing, d.meta.TableVersion = framing, version
}

// recycle gives the draft's memory back.
func (d *draft) recycle() {
	give(d.raw)
	d.raw = nil
	d.meta.Reset()
	d.places = d.places[:0]
	d.text = d.text[:0]
	clear(d.pairs)
	d.pairs = d.pairs[:0]
	drafts.Put(d)
}

// request says that the last n events came with b.
func (d *draft) request(b *event.Batch, n int) {
	var caller []byte
	if b.HasIDs { // an id is one only together with who brought it
		caller = keep(d, b.Caller)
	}
	d.meta.Requests = append(d.meta.Requests, wire.Request{
		Count: uint32(n), Time: b.Arrived, ID: keep(d, b.ID),
		TraceParent: keep(d, b.TraceParent), Chain: keep(d, b.Chain), Source: keep(d, b.Producer),
		TraceState: keep(d, b.TraceState), ClientID: keep(d, b.RequestID), Caller: caller,
	})
}

// add appends an event; common says that its key is the one of its request.
func (d *draft) add(e *event.Event, common bool) {
	m := &d.meta
	if n := len(e.Data) + binary.MaxVarintLen64; cap(d.raw.b)-len(d.raw.b) < n {
		d.raw = grow(d.raw, n, d.limit)
	}
	d.raw.b = wire.AppendEvent(d.raw.b, e.Data, m.Framing)
	d.labels += labels(e)
	before := len(d.places)
	d.place(e, common)
	if e.Time != 0 || len(m.Times) > 0 {
		m.Times = append(padded(m.Times, before), e.Time)
	}
	if len(e.ID) > 0 || len(m.IDs) > 0 {
		m.IDs = append(padded(m.IDs, before), keep(d, e.ID))
	}
	if len(e.Attrs) > 0 || len(m.Attrs) > 0 {
		m.Attrs = append(padded(m.Attrs, before), d.attrs(e.Attrs))
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

// place describes the event that was appended last. It is written where it stays, field by field: put together elsewhere
// and copied, it cost a tenth of the way from socket to backend.
func (d *draft) place(e *event.Event, common bool) {
	at := len(d.raw.b) - len(e.Data)
	if d.meta.Framing == wire.NDJSON {
		at--
	}
	d.places = append(d.places, place{})
	p := &d.places[len(d.places)-1]
	p.tag = uint32(e.Hash) // the low bits: the high ones name the slot, of which a lane has few
	p.slot, p.child, p.epoch = e.Slot, e.Child, e.Epoch
	p.at, p.size, p.keySize = uint32(at), uint32(len(e.Data)), keyless
	switch {
	case !e.HasKey:
	case common && d.common > 0:
		p.key, p.keySize, p.keyAt = uint32(d.common-1), int32(len(e.Key)), -1
	default:
		p.key, p.keySize, p.keyAt = uint32(len(d.text)), int32(len(e.Key)), within(e.Data, e.Key)
		d.text = append(d.text, e.Key...)
		if common {
			d.common = int(p.key) + 1
		}
	}
}

// within returns where in data a key begins that is a view into it, -1 when it is none: the capacities of the two then
// differ by what lies in front of the key.
func within(data, key []byte) int32 {
	at := cap(data) - cap(key)
	if at < 0 || at+len(key) > len(data) || !bytes.Equal(data[at:at+len(key)], key) {
		return -1
	}
	return int32(at)
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
