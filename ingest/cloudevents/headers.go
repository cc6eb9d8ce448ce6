package cloudevents

import (
	"bytes"

	"github.com/headgate-io/headgate/event"
)

// Prefix begins the name of a header that carries an attribute.
const Prefix = "ce-"

var dataContentType = []byte("datacontenttype") // read only

// Headers reads the attributes of event i of b, which came in binary mode, from the header fields of the request; the
// data's media type is that of the request. It sets ID, Time and Attrs of the event as JSON does. A problem means
// that a header cannot be read at all.
func (d *Decoder) Headers(b *event.Batch, i int, fields []event.Attr) (Fault, *event.Problem) {
	d.reset()
	for k := range fields {
		name, value := fields[k].Name, fields[k].Value
		if string(name) == ContentType {
			name = dataContentType
		} else {
			var ours bool
			if name, ours = bytes.CutPrefix(name, []byte(Prefix)); !ours {
				continue
			}
			var detail string
			if value, detail = Unescape(b.Alloc(len(value))[:0], value); detail != "" {
				return Fault{}, event.Problemf(event.BadParameter, "header ce-%s: %s", name, detail)
			}
		}
		if f := d.set(name, value); f.Detail != "" {
			if f.Detail == isTwice {
				return Fault{}, event.Problemf(event.BadParameter, "header ce-%s %s", name, isTwice)
			}
			return f, nil
		}
	}
	return d.finish(b, i), nil
}
