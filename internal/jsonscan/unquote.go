package jsonscan

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// longestEscape is the most bytes that one byte of a name can take in a JSON string: \u0041 for A.
const longestEscape = 6

// Unquote appends the content of a valid JSON string, given with its quotes, to dst. An escaped surrogate without
// its other half becomes U+FFFD, as in encoding/json; bytes that are not UTF-8 stay as they are.
func Unquote(dst, quoted []byte) []byte {
	return appendUnescaped(dst, quoted[1:len(quoted)-1])
}

func appendUnescaped(dst, src []byte) []byte {
	for {
		at := bytes.IndexByte(src, '\\')
		if at < 0 {
			return append(dst, src...)
		}
		dst = append(dst, src[:at]...)
		src = src[at+1:]
		if src[0] != 'u' {
			dst = append(dst, single(src[0]))
			src = src[1:]
			continue
		}
		r := codeUnit(src[1:])
		src = src[5:]
		if utf16.IsSurrogate(r) {
			low := rune(-1)
			if len(src) >= 6 && src[0] == '\\' && src[1] == 'u' {
				low = codeUnit(src[2:])
			}
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				src = src[6:]
			}
		}
		dst = utf8.AppendRune(dst, r)
	}
}

// single is the character that an escape of two characters stands for.
func single(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

// codeUnit is the UTF-16 code unit of four hexadecimal digits.
func codeUnit(digits []byte) (r rune) {
	for _, c := range digits[:4] {
		r = r<<4 | rune(hex(c))
	}
	return r
}
