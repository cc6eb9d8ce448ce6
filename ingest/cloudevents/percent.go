package cloudevents

import (
	"bytes"
	"unicode/utf8"
)

// Unescape appends to dst what the value of a ce- header stands for (HTTP Protocol Binding 1.0, section 3.1.3.2): a quoted
// string is unquoted, then percent-encoding is undone, once. Detail says what is wrong with the value, empty for nothing.
func Unescape(dst, value []byte) (text []byte, detail string) {
	from := len(dst)
	if len(value) > 0 && value[0] == '"' {
		var closed bool
		if dst, closed = unquoteField(dst, value[1:]); !closed {
			return dst, "a quoted string must end where the value does"
		}
		value = dst[from:]
	}
	// Decoding never lengthens, so it can be done in place.
	text = dst[:from]
	for {
		at := bytes.IndexByte(value, '%')
		if at < 0 {
			break
		}
		text = append(text, value[:at]...)
		if value = value[at+1:]; len(value) < 2 || hex(value[0]) > 15 || hex(value[1]) > 15 {
			return text, "a % is followed by two hexadecimal digits; write %25 for the sign itself"
		}
		text = append(text, hex(value[0])<<4|hex(value[1]))
		value = value[2:]
	}
	text = append(text, value...)
	if !utf8.Valid(text[from:]) {
		return text, "the bytes behind the percent signs are not UTF-8"
	}
	return text, ""
}

// unquoteField undoes the rest of a quoted string (RFC 9110 section 5.6.4), whose first quote is gone.
func unquoteField(dst, value []byte) (text []byte, closed bool) {
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == '"':
			return dst, i == len(value)-1
		case c == '\\' && i+1 < len(value):
			i++
			dst = append(dst, value[i])
		default:
			dst = append(dst, c)
		}
	}
	return dst, false
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
