package jsonscan

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"github.com/headgate-io/headgate/event"
)

// Constants with one byte eight times, for eight bytes at a time.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special marks in each byte's highest bit the bytes of w that end a plain run: the quote, the backslash, control
// characters, and bytes from 0x80. The lowest mark is exact; above it a borrow can make more.
// Exchanging 0x20 and 0x22 puts the quote right behind the control characters: one subtraction finds both.
func special(w uint64) uint64 {
	return ((w ^ ones*0x02) - ones*0x21 | (w ^ ones*'\\') - ones | w) & highs
}

// text checks the string whose first byte behind the quote is src[i] and returns the index behind the closing
// quote, or -1. It sets escaped when the string has escapes.
func (s *Scanner) text(src []byte, i int) int {
	for {
		var w uint64
		if len(src)-i >= 8 {
			w = binary.LittleEndian.Uint64(src[i:])
		} else {
			w = lastWord(src, i)
		}
		marks := special(w)
		if marks == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(marks) / 8
		if i < len(src) && src[i] == '"' {
			return i + 1
		}
		if i = s.odd(src, i); i < 0 {
			return -1
		}
	}
}

// lastWord is the less than eight bytes from src[i] on, filled up with zeros, which special takes for control characters.
func lastWord(src []byte, i int) (w uint64) {
	for n := len(src) - 1; n >= i; n-- {
		w = w<<8 | uint64(src[n])
	}
	return w
}

// odd goes over what starts at src[i] in a string and is not plain: an escape or bytes from 0x80.
func (s *Scanner) odd(src []byte, i int) int {
	if i >= len(src) {
		return s.malformed(len(src), "the text ends inside a string")
	}
	switch c := src[i]; {
	case c == '\\':
		s.escaped = true
		return s.escape(src, i)
	case c < ' ':
		return s.malformed(i, "a control character in a string must be escaped")
	}
	for i < len(src) && src[i] >= utf8.RuneSelf {
		r, size := utf8.DecodeRune(src[i:])
		if r == utf8.RuneError && size == 1 && !s.PassUTF8 {
			s.refused(event.InvalidUTF8, i, "a byte in a string is not UTF-8")
		}
		i += size
	}
	return i
}

// escape goes over the escape whose backslash is src[i].
func (s *Scanner) escape(src []byte, i int) int {
	if i++; i >= len(src) {
		return s.malformed(len(src), "the text ends inside an escape")
	}
	switch src[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1
	case 'u':
	default:
		return s.malformed(i, "this escape does not exist in JSON")
	}
	for n := 1; n <= 4; n++ {
		if i+n >= len(src) {
			return s.malformed(len(src), "the text ends inside an escape")
		}
		if hex(src[i+n]) > 15 {
			return s.malformed(i+n, "\\u must be followed by four hexadecimal digits")
		}
	}
	return i + 5
}

// hex is the value of a hexadecimal digit, over 15 for any other byte.
func hex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10
	}
	return 0xff
}
