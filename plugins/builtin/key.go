// Package builtin has what would be a plugin but needs none: keys and ids by JSON pointer or header, keys by CloudEvents
// attribute.
package builtin

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/jsonscan"
	"github.com/headgate-io/headgate/sdk/abi"
)

// Key gives keys to the events that no plugin gave one. The zero value takes them from Headgate-Key alone.
type Key struct {
	JSON     string // JSON pointer of the stream's key, which the syntax check watches: event.FieldKey; empty for none
	Header   string // name of a request header, in lower case; empty for none
	CE       string // name of a CloudEvents attribute; empty for none
	Required bool   // an event without a key is refused
}

// Validate reports what is wrong with a Key that came from a configuration.
func (k Key) Validate() error {
	set := 0
	for _, from := range [...]string{k.JSON, k.Header, k.CE} {
		if from != "" {
			set++
		}
	}
	if set > 1 {
		return fmt.Errorf("key: json, header and ce: only one can be had")
	}
	if k.Header != strings.ToLower(k.Header) {
		return fmt.Errorf("key: header %q: must be in lower case", k.Header)
	}
	_, err := jsonscan.ParsePointer(k.JSON)
	return err
}

// FillKeys sets the keys of the events that are kept and have none: by pointer, header or attribute, then from
// Headgate-Key (Batch.Key), then from the CloudEvents attribute partitionkey. It rejects events whose key can't be one.
func (k Key) FillKeys(b *event.Batch) {
	shared, has := k.ofRequest(b)
	b.Common = nil // not empty, which is a key
	if has {
		b.Common = shared
	}
	for i := range b.Events {
		e := &b.Events[i]
		if e.Verdict != event.Keep || e.HasKey {
			continue
		}
		if k.JSON != "" && !fromField(b, i) {
			continue
		}
		if k.CE != "" {
			e.Key, e.HasKey = attribute(e, k.CE)
		}
		if !e.HasKey && has {
			e.Key, e.HasKey = shared, true
		}
		if !e.HasKey && len(e.Attrs) > 0 {
			e.Key, e.HasKey = attribute(e, "partitionkey")
		}
		switch {
		case e.HasKey && len(e.Key) > abi.MaxKey:
			b.Reject(i, event.KeyTooLong, "the key is longer than 1024 bytes")
		case !e.HasKey && k.Required:
			b.Reject(i, event.KeyRequired, k.missing())
		}
	}
}

// ofRequest is the key that all events of the request without one of their own get.
func (k Key) ofRequest(b *event.Batch) (key []byte, ok bool) {
	if k.Header != "" {
		for _, h := range b.Headers {
			if string(h.Name) == k.Header {
				return h.Value, true
			}
		}
	}
	return b.Key, b.HasKey
}

// attribute is the value of a CloudEvents attribute.
func attribute(e *event.Event, name string) (value []byte, ok bool) {
	if name == "id" {
		return e.ID, e.ID != nil && len(e.Attrs) > 0 // an id without attributes is no CloudEvent's
	}
	for i := range e.Attrs {
		if string(e.Attrs[i].Name) == name {
			return e.Attrs[i].Value, true
		}
	}
	return nil, false
}

// fromField takes the key from the watched field, if it is there. It reports false when it rejected the event.
func fromField(b *event.Batch, i int) bool {
	e := &b.Events[i]
	span := e.Fields[event.FieldKey]
	if span.Duplicate {
		b.RejectAt(i, int(span.Off), event.DuplicateName, "a name on the way to the key occurs twice")
		return false
	}
	if span.Len == 0 {
		return true
	}
	switch value := e.Data[span.Off:][:span.Len]; value[0] {
	case '{', '[':
		b.RejectAt(i, int(span.Off), event.KeyNotScalar, "the key is an object or an array")
		return false
	case 'n': // null is no key
	case '"':
		e.Key, e.HasKey = unquote(b, value), true
	default: // a number or boolean: its text
		e.Key, e.HasKey = value, true
	}
	return true
}

// unquote returns a view of the event where the string has no escapes.
func unquote(b *event.Batch, quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	return jsonscan.Unquote(b.Alloc(len(quoted))[:0], quoted)
}

func (k Key) missing() string {
	switch {
	case k.JSON != "":
		return "no key: the event has no value at " + k.JSON + ", and the request no Headgate-Key"
	case k.Header != "":
		return "no key: the request has neither the header " + k.Header + " nor Headgate-Key"
	case k.CE != "":
		return "no key: the event has no CloudEvents attribute " + k.CE + ", and the request no Headgate-Key"
	}
	return "no key: send one in Headgate-Key"
}
