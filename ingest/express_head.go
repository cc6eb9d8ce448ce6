package ingest

import (
	"bytes"

	"github.com/headgate-io/headgate/event"
)

// What may be in a header that is plain: less than RFC 9110 (section 5) and fasthttp take. The value of plainName is the byte in lower
// case, 0 for none.
var (
	plainName  = lowered("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
	plainHost  = lowered("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")
	methodPost = []byte("POST")
)

func lowered(of string) (table [256]byte) {
	for _, c := range []byte(of) {
		table[c] = c
		if 'A' <= c && c <= 'Z' {
			table[c] = c | 0x20
		}
	}
	return table
}

// parse fills in the request but for its client; false means that it is not plain, or not there whole, or not alone.
func (r *smallExchange) parse() bool {
	text := r.in[:r.n]
	if !bytes.HasPrefix(text, []byte("POST /v1/streams/")) {
		return false
	}
	line := bytes.IndexByte(text, '\n')
	const before, behind = len("POST "), len(" HTTP/1.1\r\n")
	if line < before+behind || string(text[line+1-behind:line+1]) != " HTTP/1.1\r\n" {
		return false
	}
	target := text[before : line+1-behind]
	for _, c := range target {
		if c <= ' ' || c > '~' || c == '#' {
			return false
		}
	}
	length, fields, ok := r.head.parsePlain(text[line+1:])
	body := text[line+1+fields:]
	if !ok || length != len(body) || length == 0 {
		return false
	}
	r.body.rest = body
	r.head.request = request{method: methodPost, target: target, fields: r.head.fields, length: int64(length)}
	return true
}

// parsePlain is parse for a header that is plain, the announced length of whose body it returns with its own.
func (h *head) parsePlain(raw []byte) (length, size int, ok bool) {
	h.text = append(h.text[:0], raw...)
	h.fields = h.fields[:0]
	length = -1
	host := false
	for rest := h.text; ; {
		end := bytes.IndexByte(rest, '\n')
		if end < 1 || rest[end-1] != '\r' || len(h.fields) == maxFields {
			return 0, 0, false
		}
		line := rest[:end-1]
		rest = rest[end+1:]
		if len(line) == 0 {
			return length, len(raw) - len(rest), host && length >= 0
		}
		f, ok := plainField(line)
		if !ok {
			return 0, 0, false
		}
		switch string(f.Name) {
		case "host":
			ok = !host && isPlainHost(f.Value)
			host = true
		case "content-length":
			ok = length < 0
			length = plainLength(f.Value)
			ok = ok && length >= 0
		case "connection":
			ok = bytes.EqualFold(f.Value, []byte("keep-alive"))
		case "transfer-encoding", "expect", "trailer", "upgrade":
			ok = false
		}
		if !ok {
			return 0, 0, false
		}
		h.fields = append(h.fields, f)
	}
}

// plainField is splitField for a line that is plain.
func plainField(line []byte) (f event.Attr, ok bool) {
	at := 0
	for at < len(line) && line[at] != ':' {
		c := plainName[line[at]]
		if c == 0 {
			return f, false
		}
		line[at] = c
		at++
	}
	if at == 0 || at == len(line) {
		return f, false
	}
	value := line[at+1:]
	for _, c := range value {
		if c < ' ' && c != '\t' || c > '~' {
			return f, false
		}
	}
	return event.Attr{Name: line[:at], Value: trim(value)}, true
}

// isPlainHost takes a name or an IPv4 address, and a port.
func isPlainHost(value []byte) bool {
	name, port, _ := bytes.Cut(value, []byte{':'})
	for _, c := range name {
		if plainHost[c] == 0 {
			return false
		}
	}
	for _, c := range port {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(name) > 0
}

// plainLength is the number that value is, -1 for none that could be of a small body.
func plainLength(value []byte) (n int) {
	if len(value) == 0 || len(value) > 5 || value[0] == '0' {
		return -1
	}
	for _, c := range value {
		if c < '0' || c > '9' {
			return -1
		}
		n = 10*n + int(c-'0')
	}
	return n
}
