package jsonscan

import (
	"encoding/binary"
	"math/bits"
)

// literal checks that src[i:] starts with word, whose first byte is known to be there.
func (s *Scanner) literal(src []byte, i int, word string) int {
	for n := 1; n < len(word); n++ {
		if i+n >= len(src) || src[i+n] != word[n] {
			return s.malformed(src, i+n, "a value is expected: true, false and null are the only words")
		}
	}
	return i + len(word)
}

// number checks the number that starts at src[i] with a minus sign or a digit.
func (s *Scanner) number(src []byte, i int) int {
	if src[i] == '-' {
		i++
	}
	first := i
	if i = digits(src, i); i == first {
		return s.malformed(src, i, "a digit is expected")
	}
	if src[first] == '0' && i > first+1 {
		return s.malformed(src, first+1, "a number has no leading zeros")
	}
	if i < len(src) && src[i] == '.' {
		fraction := i + 1
		if i = digits(src, fraction); i == fraction {
			return s.malformed(src, i, "a digit is expected")
		}
	}
	if i < len(src) && src[i]|0x20 == 'e' {
		exponent := i + 1
		if exponent < len(src) && (src[exponent] == '+' || src[exponent] == '-') {
			exponent++
		}
		if i = digits(src, exponent); i == exponent {
			return s.malformed(src, i, "a digit is expected")
		}
	}
	return i
}

// digits returns the index behind the decimal digits from src[i] on.
func digits(src []byte, i int) int {
	for ; i+8 <= len(src); i += 8 {
		w := binary.LittleEndian.Uint64(src[i:i+8]) ^ ones*'0'
		if marks := (w | (w + ones*(0x80-10))) & highs; marks != 0 { // the lowest mark is exact
			return i + bits.TrailingZeros64(marks)/8
		}
	}
	for i < len(src) && src[i]-'0' <= 9 {
		i++
	}
	return i
}
