package cloudevents

import (
	"bytes"
	"encoding/base64"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/jsonscan"
)

// JSON reads the attributes of event i of b, whose data is valid JSON: an object in the JSON format of CloudEvents. It sets
// ID, Time and Attrs of the event, which then are views into its data or memory of the batch, unless there is a fault.
func (d *Decoder) JSON(b *event.Batch, i int) Fault {
	d.reset()
	data := b.Events[i].Data
	if at := jsonscan.Skip(data, 0); data[at] != '{' {
		return Fault{Offset: at, Detail: "a CloudEvent is a JSON object"}
	}
	for m := jsonscan.MembersOf(data); m.Next(); {
		if f := d.member(b, &m); f.Detail != "" {
			f.Offset = m.At
			return f
		}
	}
	d.attrs[d.n] = structured
	d.n++
	return d.finish(b, i)
}

var structured = event.Attr{Name: []byte(ContentType), Value: []byte(TypeEvent)} // read only

func (d *Decoder) member(b *event.Batch, m *jsonscan.Members) Fault {
	name := unquote(b, m.Name)
	switch string(name) {
	case "data", "data_base64":
		return d.payload(b, name, m.Value)
	}
	value := m.Value
	switch value[0] {
	case 'n': // null is an attribute that is not there
		return Fault{}
	case '"':
		if loneSurrogate(value) {
			return Fault{Name: name, Detail: badText}
		}
		value = unquote(b, value)
	case '{', '[':
		return Fault{Name: name, Detail: mustBePlain}
	default:
		if isCore(name) {
			return Fault{Name: name, Detail: mustBeText}
		}
		if value[0] != 't' && value[0] != 'f' && !isInteger(value) {
			return Fault{Name: name, Detail: mustBePlain}
		}
	}
	return d.set(name, value)
}

// payload looks at the member data, which may be anything, or data_base64, which is a string.
func (d *Decoder) payload(b *event.Batch, name, value []byte) Fault {
	if len(name) > len("data") {
		switch {
		case value[0] == 'n':
			return Fault{}
		case value[0] != '"' || !isBase64(unquote(b, value)):
			return Fault{Name: name, Detail: "must be a string of base64"}
		}
	}
	if d.data {
		return Fault{Name: name, Detail: "is a second value: an event has either data or data_base64, once"}
	}
	d.data = true
	return Fault{}
}

// isCore reports whether name is an attribute of the specification itself: all of those are strings in JSON.
func isCore(name []byte) bool {
	switch string(name) {
	case "specversion", "id", "source", "type", "subject", "time", "datacontenttype", "dataschema":
		return true
	}
	return false
}

// unquote returns the content of a JSON string: a view where it has no escapes.
func unquote(b *event.Batch, quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	return jsonscan.Unquote(b.Alloc(len(quoted))[:0], quoted)
}

// loneSurrogate reports whether a JSON string has half of a surrogate pair in an escape: it stands for no character.
func loneSurrogate(quoted []byte) bool {
	for {
		at := bytes.IndexByte(quoted, '\\')
		if at < 0 {
			return false
		}
		quoted = quoted[at+1:]
		switch half := surrogate(quoted); {
		case half == 0:
			quoted = quoted[1:]
		case half == high && quoted[5] == '\\' && surrogate(quoted[6:]) == low:
			quoted = quoted[11:]
		default:
			return true
		}
	}
}

const (
	high = 'b'
	low  = 'f'
)

// surrogate returns high or low when text begins with the u and digits of a surrogate, else 0.
func surrogate(text []byte) byte {
	if text[0] != 'u' || text[1]|0x20 != 'd' {
		return 0
	}
	switch c := text[2] | 0x20; {
	case text[2] == '8', text[2] == '9', c == 'a', c == 'b':
		return high
	case 'c' <= c && c <= 'f':
		return low
	}
	return 0
}

// isBase64 reports whether text is padded base64 of the usual alphabet (RFC 4648 section 4).
func isBase64(text []byte) bool {
	var out [48]byte
	for len(text) > 64 {
		if n, err := base64.StdEncoding.Decode(out[:], text[:64]); err != nil || n != 48 {
			return false
		}
		text = text[64:]
	}
	n, err := base64.StdEncoding.Decode(out[:], text)
	return err == nil && base64.StdEncoding.EncodedLen(n) == len(text)
}
