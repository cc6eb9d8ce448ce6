package plugin

import (
	"bytes"
	"math"
	"unsafe"
)

// JSONRaw returns the value of a member of a JSON object as it stands there, strings with their quotes. ok is
// false when text is no object or has no such member, or has it twice: which one is meant is ambiguous, and the
// gateway's own extractor refuses such an event. Names are compared after unescaping. The text is taken to be
// valid, as that of events of a JSON stream is.
//
// The first look-up in an event scans it once; further ones are cheap.
func JSONRaw(text []byte, name string) (value []byte, ok bool) {
	own := len(text) == len(g.event) && unsafe.SliceData(text) == unsafe.SliceData(g.event)
	if !own || !g.scanned {
		g.members = scan(g.members[:0], text)
		g.scanned = own
	}
	m, ok := find(g.members, text, name)
	if !ok {
		return nil, false
	}
	return text[m.value:m.end], true
}

// JSONString is JSONRaw for a string, unescaped; anything else is not ok. The bytes are part of text, or valid
// until the next batch.
func JSONString(text []byte, name string) (value []byte, ok bool) {
	raw, ok := JSONRaw(text, name)
	if !ok || raw[0] != '"' {
		return nil, false
	}
	raw = raw[1 : len(raw)-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw, true
	}
	return unescape(g.kept.alloc(len(raw))[:0], raw), true
}

// JSONInt is JSONRaw for a whole number that an int64 holds, written without fraction and exponent; anything
// else is not ok.
func JSONInt(text []byte, name string) (value int64, ok bool) {
	raw, ok := JSONRaw(text, name)
	if !ok {
		return 0, false
	}
	digits, limit := raw, uint64(math.MaxInt64)
	if raw[0] == '-' {
		digits, limit = raw[1:], limit+1
	}
	var v uint64
	for _, c := range digits {
		d := uint64(c - '0')
		if c < '0' || c > '9' || v > (limit-d)/10 {
			return 0, false
		}
		v = v*10 + d
	}
	if len(digits) < len(raw) {
		v = -v
	}
	return int64(v), len(digits) > 0
}

// find returns the member of that name; ok is false when there is none, or two.
func find(members []member, text []byte, name string) (found *member, ok bool) {
	for i := range members {
		m := &members[i]
		if m.nameEnd-m.name != uint32(len(name)) && !m.escaped {
			continue
		}
		if raw := text[m.name:m.nameEnd]; string(raw) != name && !(m.escaped && sameUnescaped(raw, name)) {
			continue
		}
		if ok {
			return nil, false
		}
		found, ok = m, true
	}
	return found, ok
}

func sameUnescaped(raw []byte, name string) bool {
	return string(unescape(g.kept.alloc(len(raw))[:0], raw)) == name
}
