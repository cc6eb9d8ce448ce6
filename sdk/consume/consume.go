// Package consume reads what Headgate has put into a backend: a run of frames becomes events with all that is
// known of them.
package consume

import (
	"errors"
	"fmt"
	"sync"

	"github.com/headgate-io/headgate/internal/compress"
	"github.com/headgate-io/headgate/sdk/wire"
)

// MaxFrame is the most bytes the events of one frame, or of one payload without metadata, may decompress to.
const MaxFrame = 256 << 20

// None is the Slot or Child of an event that has none.
const None = wire.None

// Attr is a CloudEvents attribute.
type Attr = wire.Attr

// Event is one event as it was ingested. An event of a payload without metadata (codecs gzip and none carry
// none) has its Data, and Slot and Child None; everything else is zero. All byte slices are lent: they are
// valid until the function they were passed to returns.
type Event struct {
	Stream    string
	Partition uint32
	Gateway   string // id of the gateway that took the event
	Number    uint64 // in the lane of (gateway, stream, partition), from 1, without gaps; with the lane it identifies the event

	Slot  int32  // None for a null key
	Child int32  // child slot of a split key, else None
	Epoch uint32 // of the child if there is one, else of the slot

	Key    []byte
	HasKey bool   // false: a null key; an empty key is a key
	ID     []byte // nil: the producer gave none
	Time   int64  // unix nanoseconds: the event's own time, else its request's arrival

	Source      []byte // the producer
	TraceParent []byte // W3C traceparent of the request, empty for none
	Attrs       []Attr // CloudEvents attributes other than the id

	Data []byte // byte for byte as it came
}

// Decode passes the events of payload to yield, in order. contentEncoding and contentType are the headers
// that came with it (an absent one is the empty string). A frame's events are passed only after the whole
// frame was found sound. Decode stops at the first error: yield's own as it is, or one that wraps
// wire.ErrTruncated, wire.ErrMalformed or an error of the decompressor.
func Decode(payload []byte, contentEncoding, contentType string, yield func(Event) error) error {
	framing, ok := wire.FramingOf(contentType)
	if !ok {
		return fmt.Errorf("decode: content type %q is not one of frames: %s, %s",
			contentType, wire.TypeNDJSON, wire.TypePrefixed)
	}
	codec, err := compress.ByEncoding(contentEncoding)
	if err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	d := decoders.Get().(*decoder)
	defer decoders.Put(d)
	for n := 1; len(payload) > 0; n++ {
		payload, err = d.load(payload, codec, framing)
		if err != nil {
			return fmt.Errorf("decode frame %d: %w", n, err)
		}
		if err := d.each(yield); err != nil {
			return err
		}
	}
	return nil
}

// decoder is the memory of one Decode.
type decoder struct {
	meta    wire.Meta
	hasMeta bool
	raw     []byte
	events  [][]byte
	epochs  []uint32 // of each route
}

var decoders = sync.Pool{New: func() any { return new(decoder) }}

var errCount = errors.New("events and metadata differ in number or length")

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
		return fmt.Errorf("%w: %w", wire.ErrMalformed, errCount)
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
