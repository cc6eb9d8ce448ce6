package plugin

import (
	"bytes"
	"math"
)

// JSONRaw returns the value of a member of a JSON object as it stands there, strings with their quotes. ok is
// false when text is no object or has no such member, or has it twice: which one is meant is ambiguous, and the
// gateway's own extractor refuses such an event. Names are compared after unescaping. The text is taken to be
// valid, as that of events of a JSON stream is.
//
// The first look-up in an event scans it once; further ones are cheap.
func JSONRaw(text []byte, name string) (value []byte, ok bool) {
	o := &g.object
	own := len(text) > 0 && len(text) == len(g.event) && &text[0] == &g.event[0]
	if !own || !g.scanned {
		o.scan(text)
		g.scanned = own
	}
	m, ok := o.find(text, name)
	return text[m.value:m.end], ok
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

// object is where the members of a JSON object are in its text.
type object struct{ members []member }

type member struct {
	name, nameEnd int // without the quotes
	value, end    int
	escaped       bool // the name has escapes
}

// scan finds the members, none when text is no object.
func (o *object) scan(text []byte) {
	o.members = o.members[:0]
	i := space(text, 0)
	if at(text, i) != '{' {
		return
	}
	for i = space(text, i+1); at(text, i) == '"'; i = space(text, i+1) {
		var m member
		m.name = i + 1
		m.nameEnd, m.escaped = nameEnd(text, m.name)
		colon := space(text, m.nameEnd+1)
		m.value = space(text, colon+1)
		m.end = valueEnd(text, m.value)
		if at(text, colon) != ':' || m.end <= m.value {
			break // not JSON
		}
		o.members = append(o.members, m)
		if i = space(text, m.end); at(text, i) != ',' {
			break
		}
	}
}

func (o *object) find(text []byte, name string) (found member, ok bool) {
	for i := range o.members {
		m := &o.members[i]
		raw := text[m.name:m.nameEnd]
		if string(raw) != name && !(m.escaped && sameUnescaped(raw, name)) {
			continue
		}
		if ok {
			return member{}, false
		}
		found, ok = *m, true
	}
	return found, ok
}

func sameUnescaped(raw []byte, name string) bool {
	return string(unescape(g.kept.alloc(len(raw))[:0], raw)) == name
}

// at returns text[i], or 0 behind the end.
func at(text []byte, i int) byte {
	if uint(i) < uint(len(text)) {
		return text[i]
	}
	return 0
}

func space(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\n' || text[i] == '\r' || text[i] == '\t') {
		i++
	}
	return i
}

// nameEnd returns the index of the closing quote. Names are short: a plain loop is faster than a search.
func nameEnd(text []byte, i int) (end int, escaped bool) {
	for i < len(text) && text[i] != '"' {
		if text[i] == '\\' {
			escaped = true
			i++
		}
		i++
	}
	return min(i, len(text)), escaped
}

// stringEnd returns the index behind the closing quote of a string whose content starts at i, 0 when there is none.
func stringEnd(text []byte, i int) int {
	for from := i; i < len(text); {
		n := bytes.IndexByte(text[i:], '"')
		if n < 0 {
			return 0
		}
		i += n + 1
		slashes := 0
		for j := i - 2; j >= from && text[j] == '\\'; j-- {
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
	}
	return 0
}

// valueEnd returns the index behind the value that starts at i; not above i when there is no whole value.
func valueEnd(text []byte, i int) int {
	switch at(text, i) {
	case '"':
		return stringEnd(text, i+1)
	case '{', '[':
		return nestedEnd(text, i)
	}
	for i < len(text) {
		switch text[i] {
		case ',', '}', ']', ' ', '\n', '\r', '\t':
			return i
		}
		i++
	}
	return i
}

func nestedEnd(text []byte, i int) int {
	for depth := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			if i = stringEnd(text, i+1) - 1; i < 0 {
				return 0
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}
