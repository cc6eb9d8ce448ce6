package admin

import (
	"encoding/base64"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/headgate-io/headgate/event"
)

// Row is one event with where it stands.
type Row struct {
	Gateway   string
	Number    uint64 // in its lane, from 1
	Partition int32
	Slot      int32 // event.NoSlot for a null key
	Epoch     uint32
	HasKey    bool
	Key       []byte
	ID        []byte // nil for none
	Time      int64  // unix nanoseconds
	Attrs     []event.Attr
	Data      []byte

	TraceParent, TraceState, RequestID []byte // of its request as the client sent them, empty for none

	// Fault stands for Data that can't be shown (too large, damaged); Size is its length in bytes as far as known.
	Fault event.Code
	Size  int64
}

// appendRow appends r as a line of JSON. Bytes that are no UTF-8 are given as base64 in a member of their own, and an
// event that is too large is named with its size: every event has its line.
func appendRow(dst []byte, stream string, r *Row, limit int) []byte {
	dst = appendText(append(dst, '{'), "stream", []byte(stream))
	dst = strconv.AppendInt(append(dst, `,"partition":`...), int64(r.Partition), 10)
	dst = appendText(append(dst, ','), "gateway", []byte(r.Gateway))
	dst = strconv.AppendUint(append(dst, `,"number":`...), r.Number, 10)
	if fault, size := r.fault(limit); fault != "" {
		dst = appendText(append(dst, ','), "error", []byte(fault))
		dst = strconv.AppendInt(append(dst, `,"size":`...), size, 10)
		return append(appendAttributes(dst, r.Attrs), "}\n"...)
	}
	dst = append(dst, `,"slot":`...)
	if r.Slot == event.NoSlot {
		dst = append(dst, "null"...)
	} else {
		dst = strconv.AppendInt(dst, int64(r.Slot), 10)
	}
	dst = strconv.AppendUint(append(dst, `,"epoch":`...), uint64(r.Epoch), 10)
	dst = appendOptional(append(dst, ','), "key", r.Key, r.HasKey)
	dst = appendOptional(append(dst, ','), "id", r.ID, r.ID != nil)
	dst = time.Unix(0, r.Time).UTC().AppendFormat(append(dst, `,"time":"`...), time.RFC3339Nano)
	dst = append(dst, '"')
	dst = r.appendTrace(dst)
	dst = appendAttributes(dst, r.Attrs)
	dst = appendText(append(dst, ','), "data", r.Data)
	return append(dst, "}\n"...)
}

// appendTrace appends what is there of the request's names in logs and traces.
func (r *Row) appendTrace(dst []byte) []byte {
	for _, m := range [...]struct {
		name  string
		value []byte
	}{{"traceparent", r.TraceParent}, {"tracestate", r.TraceState}, {"request_id", r.RequestID}} {
		if len(m.value) > 0 {
			dst = appendText(append(dst, ','), m.name, m.value)
		}
	}
	return dst
}

func (r *Row) fault(limit int) (event.Code, int64) {
	if r.Fault == "" && len(r.Data)+len(r.Key)+len(r.ID) > limit {
		return event.EventTooLarge, int64(len(r.Data))
	}
	return r.Fault, r.Size
}

func appendOptional(dst []byte, name string, value []byte, has bool) []byte {
	if has {
		return appendText(dst, name, value)
	}
	return append(append(append(dst, '"'), name...), `":null`...)
}

// appendAttributes appends the member attributes, an object of strings, unless there are none.
func appendAttributes(dst []byte, attrs []event.Attr) []byte {
	if len(attrs) == 0 {
		return dst
	}
	dst = append(dst, `,"attributes":{`...)
	for i, a := range attrs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendText(dst, string(appendEscaped(nil, a.Name)), a.Value)
	}
	return append(dst, '}')
}

// appendText appends the member name with value as a JSON string, or name_base64.
func appendText(dst []byte, name string, value []byte) []byte {
	dst = append(append(dst, '"'), name...)
	if !utf8.Valid(value) {
		dst = append(dst, `_base64":"`...)
		return append(base64.StdEncoding.AppendEncode(dst, value), '"')
	}
	return append(appendEscaped(append(dst, `":"`...), value), '"')
}

// appendEscaped escapes what a JSON string must escape (RFC 8259 section 7) and nothing else.
func appendEscaped(dst, text []byte) []byte {
	const hex = "0123456789abcdef"
	from := 0
	for i, c := range text {
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(append(dst, text[from:i]...), '\\')
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, c)
		case '\n':
			dst = append(dst, 'n')
		case '\r':
			dst = append(dst, 'r')
		case '\t':
			dst = append(dst, 't')
		default:
			dst = append(dst, 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(dst, text[from:]...)
}
