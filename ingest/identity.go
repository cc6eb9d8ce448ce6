package ingest

import "github.com/headgate-io/headgate/event"

// identity is what names a request in logs and traces.
type identity struct {
	request string // X-Request-Id, the client's or made here; empty: not made yet
	trace   []byte // traceparent, empty for none
	state   []byte // tracestate, empty for none and without a traceparent
}

// identify takes the client's X-Request-Id where it is one that can be logged; a traceparent that is malformed is none
// (W3C Trace Context 3.2).
func identify(fields []event.Attr) (who identity) {
	for i := range fields {
		switch f := &fields[i]; {
		case string(f.Name) == "x-request-id" && who.request == "" && printable(f.Value):
			who.request = string(f.Value)
		case string(f.Name) == "traceparent" && traceable(f.Value):
			who.trace = f.Value
		case string(f.Name) == "tracestate":
			who.state = joined(who.state, f.Value)
		}
	}
	if len(who.trace) == 0 || len(who.state) > maxState || !visible(who.state) {
		who.state = nil
	}
	return who
}

// maxState is how long a tracestate may be to be passed on. W3C Trace Context (3.3.1.5) asks for 512 characters.
const maxState = 2 << 10

// joined is a list of which each field has a part (RFC 9110 section 5.3).
func joined(before, part []byte) []byte {
	if len(before) == 0 {
		return part
	}
	return append(append(before[:len(before):len(before)], ','), part...)
}

func visible(text []byte) bool {
	for _, c := range text {
		if c != '\t' && (c < ' ' || c > '~') {
			return false
		}
	}
	return true
}

// maxRequestID is how long an X-Request-Id may be to be taken over.
const maxRequestID = 128

func printable(id []byte) bool {
	for _, c := range id {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return len(id) <= maxRequestID
}

// traceable reports whether v has the form version-trace-parent-flags in hexadecimal digits.
func traceable(v []byte) bool {
	const size = 55
	if len(v) < size || v[2] != '-' || v[35] != '-' || v[52] != '-' || string(v[:2]) == "ff" {
		return false
	}
	for i, c := range v[:size] {
		digit := '0' <= c && c <= '9' || 'a' <= c && c <= 'f'
		if !digit && i != 2 && i != 35 && i != 52 {
			return false
		}
	}
	return len(v) == size || string(v[:2]) != "00" && v[size] == '-'
}
