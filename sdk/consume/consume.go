// Package consume reads what Headgate has put into a backend: a run of frames becomes events with all that is
// known of them.
package consume

import (
	"fmt"

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
	TraceState  []byte // W3C tracestate of the request, empty for none
	RequestID   []byte // X-Request-Id of the request, empty when the client sent none; clients repeat it
	BatchID     []byte // batch_id of the answer
	// Attrs are CloudEvents attributes other than the id. With one called content-type among them, Data is the whole event in
	// the JSON format of CloudEvents; without it Data is the event's data alone.
	Attrs []Attr

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
	defer d.release()
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
