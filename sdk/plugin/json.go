package plugin

import "math"

// JSONRaw returns the value of a member of a JSON object as it stands there, strings with their quotes. ok is
// false when text is no object or has no such member, or has it twice: which one is meant is ambiguous, and the
// gateway's own extractor refuses such an event. Names are compared after unescaping. The text is taken to be
// valid, as that of events of a JSON stream is.
//
// The first look-up in an event, or in a part of it, scans that once; further ones in the same are cheap.
func JSONRaw(text []byte, name string) (value []byte, ok bool) {
	m := lookUp(text, name)
	if m == nil {
		return nil, false
	}
	return text[m.value:m.end], true
}

// JSONString is JSONRaw for a string, unescaped; anything else is not ok. The bytes are part of text, or valid
// until the next batch.
func JSONString(text []byte, name string) (value []byte, ok bool) {
	m := lookUp(text, name)
	if m == nil || text[m.value] != '"' {
		return nil, false
	}
	value = text[m.value+1 : m.end-1]
	if m.escapes&escapedValue != 0 {
		value = unescaped(value)
	}
	return value, true
}

// JSONInt is JSONRaw for a whole number that an int64 holds, written without fraction and exponent; anything
// else is not ok.
func JSONInt(text []byte, name string) (value int64, ok bool) {
	m := lookUp(text, name)
	if m == nil {
		return 0, false
	}
	if n := m.end - m.value; n <= 8 && m.end >= 8 {
		before := 64 - 8*n // bits of what stands before the number
		digits := (word(text, int(m.end)-8) ^ zeros) >> before << before
		if allDigits(digits) {
			return eightDigits(digits), true
		}
	}
	return number(text[m.value:m.end])
}

const zeros = 0x3030303030303030 // 8 times '0'

// allDigits reports whether each of 8 bytes is at most 9.
func allDigits(w uint64) bool { return (w|(w+0x7676767676767676))&0x8080808080808080 == 0 }

// eightDigits is the number whose digits are the bytes of w, the first one the lowest: pairs of digits, of pairs,
// and of those are put together side by side.
func eightDigits(w uint64) int64 {
	w = w*10 + w>>8
	const pairs = 0x000000FF000000FF
	return int64((w&pairs*(1000000<<32+100) + w>>16&pairs*(10000<<32+1)) >> 32)
}

func number(text []byte) (value int64, ok bool) {
	digits, limit := text, uint64(math.MaxInt64)
	if text[0] == '-' {
		digits, limit = text[1:], limit+1
	}
	var v uint64
	for _, c := range digits {
		d := uint64(c) - '0'
		if d > 9 || v > math.MaxInt64/10 {
			return 0, false
		}
		if v = v*10 + d; v > limit {
			return 0, false
		}
	}
	if len(digits) < len(text) {
		v = -v
	}
	return int64(v), len(digits) > 0
}

// lookUpInGo returns the member of that name; nil when there is none, or two. The scan of text in a batch, which
// stays as it is, is remembered.
func lookUpInGo(text []byte, name string) *member {
	if at := spanOf(text); at != g.scanned {
		g.members, g.escapes = scan(g.members[:0], text), 1
		if g.scanned = nowhere; g.inBatch(text) {
			g.scanned = at
		}
	}
	return find(g.members, text, name)
}

// find returns the member of that name; nil when there is none, or two.
func find(members []member, text []byte, name string) (found *member) {
	for i := range members {
		m := &members[i]
		if m.nameEnd-m.name != uint32(len(name)) && m.escapes&escapedName == 0 {
			continue
		}
		if raw := text[m.name:m.nameEnd]; string(raw) != name && !(m.escapes&escapedName != 0 && string(unescaped(raw)) == name) {
			continue
		}
		if found != nil {
			return nil
		}
		found = m
	}
	return found
}

// unescaped is the content of a JSON string, given without its quotes; it is valid until the next batch.
func unescaped(raw []byte) []byte { return unescape(g.kept.alloc(len(raw))[:0], raw) }
