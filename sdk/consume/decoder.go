package consume

import (
	"fmt"
	"sync"

	"github.com/headgate-io/headgate/internal/compress"
	"github.com/headgate-io/headgate/sdk/wire"
)

// decoder is the memory of one Decode.
type decoder struct {
	meta    wire.Meta
	hasMeta bool
	raw     []byte
	events  [][]byte
	epochs  []uint32 // of each route
}

var decoders = sync.Pool{New: func() any { return new(decoder) }}

// keptRaw is the largest buffer that waits for the next Decode: frames are mostly of 512 KiB.
const keptRaw = 4 << 20

func (d *decoder) release() {
	if cap(d.raw) > keptRaw {
		d.raw, d.events = nil, nil
	}
	decoders.Put(d)
}

// load takes the first frame off a run, decodes and checks it.
func (d *decoder) load(run []byte, codec *compress.Codec, framing wire.Framing) (rest []byte, err error) {
	block, data, rest, err := wire.SplitFrame(run, codec.Name())
	if err != nil {
		return nil, err
	}
	d.hasMeta = block != nil
	limit := MaxFrame
	if d.hasMeta {
		if err := wire.ParseMeta(block, &d.meta); err != nil {
			return nil, err
		}
		framing = d.meta.Framing
		limit = int(min(d.meta.RawLen, MaxFrame))
	}
	if d.raw, err = codec.AppendDecoded(d.raw[:0], data, limit); err != nil {
		return nil, err
	}
	if err := d.split(framing); err != nil {
		return nil, err
	}
	if !d.hasMeta {
		return rest, nil
	}
	return rest, d.match()
}

// split cuts raw into events.
func (d *decoder) split(framing wire.Framing) error {
	d.events = d.events[:0]
	for src := d.raw; len(src) > 0; {
		data, rest, err := wire.NextEvent(src, framing)
		if err != nil {
			return fmt.Errorf("event %d: %w", len(d.events), err)
		}
		d.events = append(d.events, data)
		src = rest
	}
	return nil
}

// match brings metadata and events together.
func (d *decoder) match() error {
	m := &d.meta
	if len(d.events) != len(m.EventRoute) || uint64(len(d.raw)) != m.RawLen {
		return fmt.Errorf("%w: metadata of %d events in %d bytes, data of %d in %d",
			wire.ErrMalformed, len(m.EventRoute), m.RawLen, len(d.events), len(d.raw))
	}
	if err := m.ResolveKeys(d.raw); err != nil {
		return err
	}
	d.epochs = d.epochs[:0]
	for i := range m.Routes {
		slot := m.Routes[i].Slot
		if m.Routes[i].Child != None {
			slot = m.Routes[i].Child
		}
		epoch, _ := m.Epoch(slot)
		d.epochs = append(d.epochs, epoch)
	}
	return nil
}

func (d *decoder) each(yield func(Event) error) error {
	if !d.hasMeta {
		for _, data := range d.events {
			if err := yield(Event{Slot: None, Child: None, Data: data}); err != nil {
				return err
			}
		}
		return nil
	}
	var request *wire.Request
	left, next := uint32(0), 0
	for i, data := range d.events {
		for left == 0 && next < len(d.meta.Requests) {
			request = &d.meta.Requests[next]
			left, next = request.Count, next+1
		}
		left--
		e := d.event(i, request)
		e.Data = data
		if err := yield(e); err != nil {
			return err
		}
	}
	return nil
}

// event is all that the metadata says of event i; request is nil when the frame does not tell requests.
func (d *decoder) event(i int, request *wire.Request) Event {
	m := &d.meta
	route := m.EventRoute[i]
	r := &m.Routes[route]
	e := Event{
		Stream: m.Stream, Partition: m.Partition, Gateway: m.Gateway, Number: m.First + uint64(i),
		Slot: r.Slot, Child: r.Child, Epoch: d.epochs[route], Key: r.Key, HasKey: r.HasKey,
	}
	if request != nil {
		e.Time, e.Source, e.TraceParent = request.Time, request.Source, request.TraceParent
		e.TraceState, e.RequestID, e.BatchID = request.TraceState, request.ClientID, request.ID
	}
	if len(m.Times) > 0 && m.Times[i] != 0 {
		e.Time = m.Times[i]
	}
	if len(m.IDs) > 0 {
		e.ID = m.IDs[i]
	}
	if len(m.Attrs) > 0 {
		e.Attrs = m.Attrs[i]
	}
	return e
}
