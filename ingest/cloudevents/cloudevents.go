// Package cloudevents reads the attributes of CloudEvents 1.0 as they come over HTTP: in a JSON event, which is
// structured mode and an element of a batch, or in ce- headers, which is binary mode.
package cloudevents

import (
	"bytes"

	"github.com/headgate-io/headgate/event"
)

// Media types of the modes that have one. A request of neither type with ce- headers is in binary mode.
const (
	TypeEvent = "application/cloudevents+json"
	TypeBatch = "application/cloudevents-batch+json"
)

// ContentType is the name of an attribute that we add to events in structured mode: its value, TypeEvent, says that the
// data is the whole event and not its data alone. No attribute of a CloudEvent has a hyphen in its name.
const ContentType = "content-type"

// What one event may have. The specification knows no bounds; ours keep the attributes, which travel in the metadata of
// frames, far smaller than a frame.
const (
	MaxAttrs = 32       // attributes besides the id
	MaxBytes = 16 << 10 // their names and values with the id
)

// Fault says why an event is no valid CloudEvent; the zero Fault means it is one.
type Fault struct {
	Offset int    // byte in the event's data that is to blame
	Name   []byte // of the attribute, empty when it is none's fault
	Detail string // what is said of the attribute or of the event: a phrase that follows its name
}

// Decoder reads one event after another. It is not safe for concurrent use.
type Decoder struct {
	attrs [MaxAttrs + 1]event.Attr // the first n count; one place is for ContentType
	n     int
	id    []byte
	time  int64 // unix nanoseconds, 0 for none
	size  int
	has   required
	data  bool
}

// required is the set of required attributes that were seen.
type required uint8

const (
	specversion required = 1 << iota
	source
	typ
)

// Forget lets go of the bytes of the events that were read.
func (d *Decoder) Forget() {
	clear(d.attrs[:])
	d.id = nil
}

func (d *Decoder) reset() {
	d.n, d.id, d.time, d.size, d.has, d.data = 0, nil, 0, 0, 0, false // not the whole struct: it is large
}

// Phrases of faults.
const (
	isMissing   = "is missing; a CloudEvent has specversion, id, source and type"
	isEmpty     = "must not be empty"
	isTwice     = "is there twice"
	badName     = "is not a name of an attribute: they consist of a-z and 0-9"
	badText     = "has a control character or one that is not Unicode"
	badTime     = "is not a timestamp of RFC 3339, such as 2026-03-02T08:00:00Z"
	badVersion  = "must be 1.0"
	badType     = "is not a media type"
	mustBeText  = "must be a string"
	mustBePlain = "must be a string, a boolean or an integer of 32 bits"
	tooMany     = "is one attribute too many: an event has at most 32 besides its id"
	tooLarge    = "is too much: the attributes of an event have at most 16 KiB"
	reserved    = "is not an attribute"
)

// set takes over an attribute. Name and value live as long as the batch.
func (d *Decoder) set(name, value []byte) Fault {
	detail := d.check(name, value)
	if detail != "" {
		return Fault{Name: name, Detail: detail}
	}
	d.size += len(name) + len(value)
	switch {
	case string(name) == "id":
		d.id = value
	case d.n == MaxAttrs:
		return Fault{Name: name, Detail: tooMany}
	default:
		d.attrs[d.n] = event.Attr{Name: name, Value: value}
		d.n++
	}
	if d.size > MaxBytes {
		return Fault{Name: name, Detail: tooLarge}
	}
	return Fault{}
}

// check returns what is wrong with an attribute, empty for nothing, and notes what the event needs of it.
func (d *Decoder) check(name, value []byte) string {
	if d.seen(name) {
		return isTwice
	}
	if !isText(value) {
		return badText
	}
	switch string(name) {
	case "specversion":
		d.has |= specversion
		if string(value) != "1.0" {
			return badVersion
		}
	case "id", "subject", "dataschema", "partitionkey":
		return nonEmpty(value)
	case "source":
		d.has |= source
		return nonEmpty(value)
	case "type":
		d.has |= typ
		return nonEmpty(value)
	case "time":
		var ok bool
		if d.time, ok = parseTime(value); !ok {
			return badTime
		}
	case "datacontenttype":
		if !isMediaType(value) {
			return badType
		}
	case "data":
		return reserved
	default:
		if !isName(name) {
			return badName
		}
	}
	return ""
}

func nonEmpty(value []byte) string {
	if len(value) == 0 {
		return isEmpty
	}
	return ""
}

func (d *Decoder) seen(name []byte) bool {
	for i := range d.attrs[:d.n] {
		if bytes.Equal(d.attrs[i].Name, name) {
			return true
		}
	}
	return d.id != nil && string(name) == "id"
}

// finish gives event i of b what was read, or says what is missing.
func (d *Decoder) finish(b *event.Batch, i int) Fault {
	missing := ""
	switch {
	case d.has&specversion == 0:
		missing = "specversion"
	case d.id == nil:
		missing = "id"
	case d.has&source == 0:
		missing = "source"
	case d.has&typ == 0:
		missing = "type"
	}
	if missing != "" {
		return Fault{Name: []byte(missing), Detail: isMissing}
	}
	e := &b.Events[i]
	e.ID, e.Time, e.Attrs = d.id, d.time, b.KeepAttrs(d.attrs[:d.n])
	b.HasIDs = true
	return Fault{}
}
