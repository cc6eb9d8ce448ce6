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
// Exchanging blank and quote puts the quote right behind the control characters: one subtraction finds both.
func special(w uint64) uint64 {
	quoteOrControl := (w ^ ones*('"'^' ')) - ones*'!'
	backslash := (w ^ ones*'\\') - ones
	return (quoteOrControl | backslash | w) & highs
}

// plain returns the index of the first special byte from src[i] on, or len(src).
func plain(src []byte, i int) int {
	for ; i+8 <= len(src); i += 8 {
		if marks := special(binary.LittleEndian.Uint64(src[i : i+8])); marks != 0 {
			return i + bits.TrailingZeros64(marks)/8
		}
	}
	return i + bits.TrailingZeros64(special(rest(src, i)))/8
}

// rest is what is left of src from src[i] on, less than eight bytes, filled up with zeros.
func rest(src []byte, i int) (w uint64) {
	if len(src) >= 8 {
		return binary.LittleEndian.Uint64(src[len(src)-8:]) >> (8 * (i + 8 - len(src)))
	}
	for n := len(src) - 1; n >= i; n-- {
		w = w<<8 | uint64(src[n])
	}
	return w
}

// text checks the string whose first byte behind the quote is src[i] and returns the index behind the closing
// quote, or -1. It sets escaped when the string has escapes.
func (s *Scanner) text(src []byte, i int) int {
	if i = plain(src, i); i < len(src) && src[i] == '"' {
		return i + 1
	}
	return s.textFrom(src, i)
}

// textFrom is the rest of text from the special byte src[i] on, which is not the closing quote.
func (s *Scanner) textFrom(src []byte, i int) int {
	for i < len(src) {
		switch c := src[i]; {
		case c == '"':
			return i + 1
		case c == '\\':
			s.escaped = true
			if i = s.escape(src, i); i < 0 {
				return -1
			}
		case c < ' ':
			return s.malformed(src, i, "a control character in a string must be escaped")
		default:
			i = s.wide(src, i)
		}
		i = plain(src, i)
	}
	return s.malformed(src, i, "")
}

// wide goes over the characters from src[i] on that take more than one byte.
func (s *Scanner) wide(src []byte, i int) int {
	for i < len(src) && src[i] >= utf8.RuneSelf {
		r, size := utf8.DecodeRune(src[i:])
		if r == utf8.RuneError && size == 1 && !s.PassUTF8 {
			s.refuse(event.InvalidUTF8, i, "a byte in a string is not UTF-8")
		}
		i += size
	}
	return i
}

// escape goes over the escape whose backslash is src[i].
func (s *Scanner) escape(src []byte, i int) int {
	if i++; i >= len(src) {
		return s.malformed(src, i, "")
	}
	switch src[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1
	case 'u':
	default:
		return s.malformed(src, i, "JSON has no such escape")
	}
	end := i + 5
	for i++; i < end; i++ {
		if i >= len(src) || hex(src[i]) > 15 {
			return s.malformed(src, i, "four hexadecimal digits are expected behind \\u")
		}
	}
	return end
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
