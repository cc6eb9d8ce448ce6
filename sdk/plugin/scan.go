package plugin

import (
	"math/bits"
	"unsafe"
)

// member is where a member of a JSON object is in its text.
type member struct {
	name, nameEnd uint32 // without the quotes
	value, end    uint32
	escapes       uint32 // escapedName, escapedValue
}

const (
	escapedName = 1 << iota
	escapedValue
)

// scan appends the members of the object that text is, none when it is no object. In a guest each call and each
// jump costs, bytes hardly do: strings are searched 8 bytes at a time, and white space is the rare case.
func scan(members []member, text []byte) []member {
	i := space(text, 0)
	if at(text, i) != '{' {
		return members
	}
	for i = space(text, i+1); at(text, i) == '"'; i = space(text, i+1) {
		m := member{name: uint32(i + 1)}
		i, m.escapes = closing(text, i+1)
		m.nameEnd = uint32(i)
		if i = space(text, i+1); at(text, i) != ':' {
			return members
		}
		i = space(text, i+1)
		m.value = uint32(i)
		if at(text, i) == '"' {
			var escapes uint32
			i, escapes = closing(text, i+1)
			m.escapes |= escapes * escapedValue
			i++
		} else {
			i = otherEnd(text, i)
		}
		if m.end = uint32(i); i > len(text) || m.end == m.value {
			return members // not JSON
		}
		members = append(members, m)
		if i = space(text, i); at(text, i) != ',' {
			return members
		}
	}
	return members
}

// closing returns the index of the quote that closes the string whose content starts at i, len(text) when there
// is none, and 1 if the string has escapes, else 0.
func closing(text []byte, i int) (end int, escapes uint32) {
	for i < len(text) {
		hit := special(word(text, i))
		if hit == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(hit) / 8
		if text[i] == '"' {
			return i, escapes
		}
		escapes = 1
		i += 2
	}
	return len(text), escapes
}

// special has a bit set in the first of 8 bytes that is a quote or a backslash, and none below; 0 when none is. Of a
// byte below 0x80 that is xored with what is looked for, only 0 has its highest bit set by the subtraction.
func special(word uint64) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote, slash := word^ones*'"', word^ones*'\\'
	return ((quote - ones) | (slash - ones)) &^ word & highs
}

// word returns the 8 bytes of text from i on, with zeros for those behind its end; i must be within text.
func word(text []byte, i int) uint64 {
	if last := len(text) - 8; i > last {
		return wordAtEnd(text, i)
	}
	return *(*uint64)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(text)), i))
}

func wordAtEnd(text []byte, i int) uint64 {
	if last := len(text) - 8; last >= 0 {
		return word(text, last) >> (8 * (i - last))
	}
	var w uint64
	for n, c := range text[i:] {
		w |= uint64(c) << (8 * n)
	}
	return w
}

// at returns text[i], or 0 behind the end.
func at(text []byte, i int) byte {
	if uint(i) < uint(len(text)) {
		return text[i]
	}
	return 0
}

// space returns the index of the first byte from i on that is not white space.
func space(text []byte, i int) int {
	if i < len(text) && text[i] > ' ' {
		return i
	}
	return spaces(text, i)
}

func spaces(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\n' || text[i] == '\r' || text[i] == '\t') {
		i++
	}
	return i
}

// otherEnd returns the index behind the value at i that is not a string, above len(text) when it does not end.
func otherEnd(text []byte, i int) int {
	if at(text, i)|0x20 == '{' { // or [
		return nestedEnd(text, i)
	}
	for i < len(text) && text[i] > ' ' && text[i] != ',' && text[i]|0x20 != '}' { // or ]
		i++
	}
	return i
}

func nestedEnd(text []byte, i int) int {
	for depth := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i, _ = closing(text, i+1)
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(text) + 1
}
