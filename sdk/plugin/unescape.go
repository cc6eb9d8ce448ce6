package plugin

import (
	"unicode/utf16"
	"unicode/utf8"
)

// unescape appends the content of a JSON string, given without its quotes, to dst; the result is never longer
// than src. A surrogate without its other half becomes U+FFFD, as in encoding/json; broken escapes stay as they
// are.
func unescape(dst, src []byte) []byte {
	for i := 0; i < len(src); i++ {
		if src[i] != '\\' || i+1 == len(src) {
			dst = append(dst, src[i])
			continue
		}
		i++
		switch c := src[i]; c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, n := character(src[i+1:])
			dst = utf8.AppendRune(dst, r)
			i += n
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// character reads what stands behind \u: 4 digits, or a pair of surrogates. n is how many bytes that is.
func character(src []byte) (r rune, n int) {
	r, ok := hex4(src)
	if !ok {
		return utf8.RuneError, 0
	}
	if !utf16.IsSurrogate(r) {
		return r, 4
	}
	if len(src) >= 10 && src[4] == '\\' && src[5] == 'u' {
		if low, ok := hex4(src[6:]); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return pair, 10
			}
		}
	}
	return utf8.RuneError, 4
}

func hex4(src []byte) (r rune, ok bool) {
	if len(src) < 4 {
		return 0, false
	}
	for _, c := range src[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
