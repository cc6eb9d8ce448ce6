package builtin

import (
	"fmt"
	"strconv"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/jsonscan"
)

// ID finds the ids that producers gave their events. The zero value finds none but those that CloudEvents have.
type ID struct {
	JSON   string // JSON pointer of the id, which the syntax check watches: event.FieldID; empty for none
	Header string // name of a request header, in lower case; empty for none
}

// MaxID is how many bytes an id may have.
const MaxID = 1 << 10

// Validate reports what is wrong with an ID that came from a configuration.
func (d ID) Validate() error {
	if d.JSON != "" && d.Header != "" {
		return fmt.Errorf("id: json and header: only one can be had")
	}
	_, err := jsonscan.ParsePointer(d.JSON)
	return err
}

// Fill sets the ids of the events that are kept, as they came from the client: it comes before the plugins. It rejects
// events whose id can't be one; an event without one stays without.
func (d ID) Fill(b *event.Batch) {
	switch {
	case d.JSON != "":
		for i := range b.Events {
			if e := &b.Events[i]; e.Verdict == event.Keep && len(e.ID) == 0 {
				d.fromField(b, i)
			}
		}
	case d.Header != "":
		d.fromHeader(b)
	}
}

func (d ID) fromField(b *event.Batch, i int) {
	e := &b.Events[i]
	span := e.Fields[event.FieldID]
	if span.Duplicate {
		b.RejectAt(i, int(span.Off), event.DuplicateName, "a name on the way to the id occurs twice")
		return
	}
	if span.Len == 0 {
		return
	}
	id := e.Data[span.Off:][:span.Len]
	switch id[0] {
	case '{', '[':
		b.RejectAt(i, int(span.Off), event.IDNotScalar, "the id at "+d.JSON+" is an object or an array")
		return
	case 'n': // null is no id
		return
	case '"':
		id = unquote(b, id)
	}
	if len(id) > MaxID {
		b.RejectAt(i, int(span.Off), event.IDTooLong, "the id at "+d.JSON+" is longer than 1024 bytes")
		return
	}
	e.ID = id
	b.HasIDs = b.HasIDs || len(id) > 0
}

// fromHeader gives the only event of a request the value of the header; of several each gets its index behind it, so
// that they are not taken for one another.
func (d ID) fromHeader(b *event.Batch) {
	var id []byte
	for _, h := range b.Headers {
		if string(h.Name) == d.Header {
			id = h.Value
			break
		}
	}
	for i := range b.Events {
		e := &b.Events[i]
		switch {
		case e.Verdict != event.Keep || len(e.ID) > 0 || len(id) == 0:
			continue
		case len(id) > MaxID:
			b.Reject(i, event.IDTooLong, "the header "+d.Header+" is longer than 1024 bytes")
			continue
		}
		if e.ID = id; len(b.Events) > 1 {
			e.ID = strconv.AppendInt(append(append(b.Alloc(len(id) + 12)[:0], id...), '#'), int64(i), 10)
		}
		b.HasIDs = true
	}
}
