package ingest

import (
	"bytes"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/ingest/cloudevents"
	"github.com/headgate-io/headgate/internal/window"
)

// plan is what the header of a request says is to be done with its body.
type plan struct {
	who      identity
	name     string // of the stream
	counters *streamMetrics
	stream   Stream
	settings *Settings
	limits   Limits

	framing  framing
	codings  codings
	ack      event.Level
	strict   bool
	class    event.Class
	dry      bool
	key      []byte // meaningful when hasKey
	hasKey   bool
	source   []byte      // empty: the caller, or else the client's address
	caller   []byte      // who was authenticated; empty: nobody
	once     []byte      // the idempotency key, empty for none
	run      *window.Run // of the request, when it has a key
	begun    bool        // the caller's rate was asked
	sent     int64       // bytes of the body as it came
	received time.Time   // when all of them were there

	numbering numbering

	binary  []event.Attr // header fields of a CloudEvent in binary mode, else nil
	account *account     // pays for what decoding needs; nil: nobody does
}

// single are the fields that a request may have once.
const (
	contentType = iota
	ackField
	keyField
	sourceField
	orderingField
	onceField
	originField
	sessionField
	singles
)

func single(name []byte) int {
	switch string(name) {
	case "content-type":
		return contentType
	case "headgate-ack":
		return ackField
	case "headgate-key":
		return keyField
	case "headgate-source":
		return sourceField
	case "headgate-ordering":
		return orderingField
	case "idempotency-key":
		return onceField
	case "origin":
		return originField
	case "headgate-session":
		return sessionField
	}
	return -1
}

// parse reads the header fields and the query.
func (p *plan) parse(fields []event.Attr, query []byte) (no *refusal) {
	var values [singles][]byte
	var seen [singles]bool
	for i := range fields {
		f := &fields[i]
		if k := single(f.Name); k >= 0 {
			if seen[k] {
				return twice(k, f.Name)
			}
			values[k], seen[k] = f.Value, true
		}
		if no = p.other(f); no != nil {
			return no
		}
	}
	if p.binary != nil {
		p.binary = fields
		p.framing, no = p.settings.binary(values[contentType], seen[contentType])
	} else {
		p.framing, no = p.settings.framing(values[contentType])
	}
	if no != nil {
		return no
	}
	if len(values[keyField]) > maxKey {
		return refuse(event.KeyTooLong, "Headgate-Key has %d bytes, the limit is %d", len(values[keyField]), maxKey)
	}
	p.key, p.hasKey, p.source = values[keyField], seen[keyField], values[sourceField]
	if seen[orderingField] {
		if p.class, no = p.settings.class(values[orderingField]); no != nil {
			return no
		}
	}
	if seen[onceField] {
		if p.once, no = idempotencyKey(values[onceField]); no != nil {
			return no
		}
	}
	if seen[sessionField] {
		if p.numbering, no = numberingOf(values[sessionField]); no != nil {
			return no
		}
	}
	return p.ask(query, values[ackField])
}

// maxKey is how many bytes a partition key may have.
const maxKey = 1 << 10

func twice(k int, name []byte) *refusal {
	if k == contentType {
		return refuse(event.AmbiguousContentType, "send Content-Type once")
	}
	return refuse(event.BadParameter, "%s is there twice", name)
}

// other reads the fields that may be repeated, and refuses those whose promise this version cannot keep.
func (p *plan) other(f *event.Attr) *refusal {
	switch string(f.Name) {
	case "content-encoding":
		return p.codings.add(f.Value)
	case "ce-datacontenttype":
		return refuse(event.BadParameter, "ce-datacontenttype is not sent: Content-Type says what the data of the event is")
	}
	if bytes.HasPrefix(f.Name, []byte(cloudevents.Prefix)) {
		p.binary = noFields
	}
	return nil
}

var noFields = []event.Attr{} // not nil; read only
