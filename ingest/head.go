package ingest

import (
	"bytes"
	"sync"

	"github.com/valyala/fasthttp"

	"github.com/headgate-io/headgate/event"
)

// maxFields is how many header fields a request may have.
const maxFields = 64

// head is a parsed header block; it owns the bytes its fields point into and is reused.
type head struct {
	text    []byte
	fields  []event.Attr
	request request
	refused *refusal // why the header is, if it is
	plan    plan     // what is to be done otherwise
	body    body
	body3   body3  // over HTTP/3
	room    []byte // for the answer's document

	of     *fasthttp.RequestHeader // while it is handed over: what it was found in, and how
	ticket uint64
}

var heads = sync.Pool{New: func() any { return new(head) }}

// mostRoom is how large a document's room may be to be kept.
const mostRoom = 16 << 10

// free gives the head back with the room of the answer's document.
func (h *head) free(doc []byte) {
	h.clear(doc)
	heads.Put(h)
}

// clear leaves a head that may be used again.
func (h *head) clear(doc []byte) {
	h.request, h.refused, h.plan, h.body, h.body3, h.of = request{}, nil, plan{}, body{}, body3{}, nil
	if cap(h.text) > 2*readBuffer || cap(h.fields) > 2*maxFields { // of a header that was refused
		h.text, h.fields = nil, nil
	}
	if cap(doc) > 0 && cap(doc) <= mostRoom {
		h.room = doc[:0]
	}
}

// identity is that of the request; h may be nil.
func (h *head) identity() identity {
	if h == nil {
		return identity{}
	}
	return identify(h.fields)
}

// parse splits raw, the header lines as they came, into fields. It refuses what two parsers in a row can read in two
// ways: bare line feeds, folded lines, and a body with two lengths (request smuggling; RFC 9112 sections 2.2, 5.2, 6.3).
// The fields that were read until then are kept.
func (h *head) parse(raw []byte) *refusal {
	h.text = append(h.text[:0], raw...)
	h.fields = h.fields[:0]
	var sized, coded bool
	for rest := h.text; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n')
		if end < 1 || rest[end-1] != '\r' {
			return refuse(event.AmbiguousFraming, "a header line must end with CR LF")
		}
		line := rest[:end-1]
		rest = rest[end+1:]
		if len(line) == 0 {
			break
		}
		if line[0] == ' ' || line[0] == '\t' {
			return refuse(event.AmbiguousFraming, "folded header lines are not accepted")
		}
		if len(h.fields) == maxFields {
			return refuse(event.HeadersTooLarge, "more than %d header fields", maxFields)
		}
		f := splitField(line)
		if bytes.IndexByte(f.Name, ' ') >= 0 { // fasthttp refuses all else that is no token
			return refuse(event.AmbiguousFraming, "the name of a header field has a blank in it")
		}
		h.fields = append(h.fields, f)
		sized = sized || string(f.Name) == "content-length"
		if string(f.Name) == "transfer-encoding" {
			coded = true
			if !bytes.EqualFold(f.Value, []byte("chunked")) { // RFC 9112 6.3: the end of such a body cannot be told
				return refuse(event.AmbiguousFraming, "Transfer-Encoding may be chunked, and nothing else")
			}
		}
	}
	if sized && coded {
		return refuse(event.AmbiguousFraming, "a request has either Content-Length or Transfer-Encoding")
	}
	return nil
}

// originForm is the path and the query that are asked for, also when scheme and host stand in front of them, which no server
// may refuse (RFC 9112 section 3.2.2). A target with another host than Host has stays as it is, and is no stream's.
func originForm(h *fasthttp.RequestHeader) []byte {
	target := h.RequestURI()
	if len(target) > 0 && target[0] == '/' {
		return target
	}
	for _, scheme := range []string{"http://", "https://"} {
		if len(target) < len(scheme) || !bytes.EqualFold(target[:len(scheme)], []byte(scheme)) {
			continue
		}
		rest := target[len(scheme):]
		if path := bytes.IndexByte(rest, '/'); path > 0 && bytes.EqualFold(rest[:path], h.Host()) {
			return rest[path:]
		}
	}
	return target
}

// splitField takes a header line apart and writes its name in lower case, in place.
func splitField(line []byte) event.Attr {
	colon := bytes.IndexByte(line, ':')
	if colon < 0 {
		colon = len(line)
	}
	name, value := line[:colon], line[min(colon+1, len(line)):]
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			name[i] = c | 0x20
		}
	}
	return event.Attr{Name: name, Value: trim(value)}
}

// trim cuts off blanks and tabs at both ends.
func trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}
