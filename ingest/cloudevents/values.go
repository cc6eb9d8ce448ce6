package cloudevents

import (
	"bytes"
	"strconv"
	"time"
	"unicode/utf8"
)

// isName reports whether name can be that of an attribute (CloudEvents 1.0, Attribute Naming Convention).
func isName(name []byte) bool {
	for _, c := range name {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return len(name) > 0
}

// ValidName reports whether name can be that of an attribute.
func ValidName(name string) bool { return isName([]byte(name)) }

// isText reports whether value has only the characters that the type String allows: no control characters, no
// noncharacters, nothing that is not UTF-8.
func isText(value []byte) bool {
	for i := 0; i < len(value); {
		c := value[i]
		if c < utf8.RuneSelf {
			if c < ' ' || c == 0x7f {
				return false
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(value[i:])
		if r == utf8.RuneError && size == 1 || r < 0xa0 || r&0xfffe == 0xfffe || 0xfdd0 <= r && r <= 0xfdef {
			return false
		}
		i += size
	}
	return true
}

// isInteger reports whether a JSON number is of the type Integer: 32 bits with sign, no fraction, no exponent.
func isInteger(number []byte) bool {
	if len(number) > len("-2147483648") {
		return false
	}
	_, err := strconv.ParseInt(string(number), 10, 32)
	return err == nil
}

// isMediaType reports whether value has the form type/subtype, with or without parameters (RFC 2046, RFC 9110 8.3.1).
func isMediaType(value []byte) bool {
	name, _, _ := bytes.Cut(value, []byte{';'})
	kind, sub, ok := bytes.Cut(bytes.TrimSpace(name), []byte{'/'})
	return ok && isToken(kind) && isToken(sub)
}

func isToken(word []byte) bool {
	for _, c := range word {
		if c <= ' ' || c >= 0x7f || bytes.IndexByte([]byte(`"(),/:;<=>?@[\]{}`), c) >= 0 {
			return false
		}
	}
	return len(word) > 0
}

// parseTime reads a timestamp of RFC 3339. The result is 0 for one that does not fit unix nanoseconds (before 1678, after
// 2261), which is valid all the same. A leap second is the second behind it.
func parseTime(text []byte) (unixNano int64, ok bool) {
	const form = "0000-00-00T00:00:00"
	if len(text) <= len(form) {
		return 0, false
	}
	for i := range len(form) {
		switch c := text[i]; form[i] {
		case '0':
			ok = '0' <= c && c <= '9'
		case 'T':
			ok = c|0x20 == 't'
		default:
			ok = c == form[i]
		}
		if !ok {
			return 0, false
		}
	}
	nanos, zone := fraction(text[len(form):])
	offset, ok := parseZone(zone)
	year, month, day := decimal(text[:4]), decimal(text[5:7]), decimal(text[8:10])
	hour, minute, second := decimal(text[11:13]), decimal(text[14:16]), decimal(text[17:19])
	date := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	if !ok || date.Day() != day || int(date.Month()) != month || hour > 23 || minute > 59 || second > 60 {
		return 0, false
	}
	if year < 1678 || year > 2261 {
		return 0, true
	}
	at := date.Add(time.Duration(hour)*time.Hour + time.Duration(minute-offset)*time.Minute + time.Duration(second)*time.Second)
	return at.UnixNano() + int64(nanos), true
}

// fraction reads the fraction of a second, if there is one; digits beyond the ninth are cut off.
func fraction(text []byte) (nanos int, rest []byte) {
	if len(text) < 2 || text[0] != '.' || text[1] < '0' || text[1] > '9' {
		return 0, text
	}
	scale := 100_000_000
	for text = text[1:]; len(text) > 0 && '0' <= text[0] && text[0] <= '9'; text = text[1:] {
		nanos += int(text[0]-'0') * scale
		scale /= 10
	}
	return nanos, text
}

// parseZone reads Z or a distance from UTC, in minutes.
func parseZone(text []byte) (minutes int, ok bool) {
	switch {
	case len(text) == 1:
		return 0, text[0]|0x20 == 'z'
	case len(text) != len("+00:00") || text[0] != '+' && text[0] != '-' || text[3] != ':':
		return 0, false
	}
	for _, i := range [...]int{1, 2, 4, 5} {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
	}
	hour, minute := decimal(text[1:3]), decimal(text[4:6])
	minutes = 60*hour + minute
	if text[0] == '-' {
		minutes = -minutes
	}
	return minutes, hour <= 23 && minute <= 59
}

// decimal is the value of digits.
func decimal(digits []byte) (n int) {
	for _, c := range digits {
		n = 10*n + int(c-'0')
	}
	return n
}
