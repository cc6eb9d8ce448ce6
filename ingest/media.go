package ingest

import (
	"bytes"
	"strings"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/ingest/cloudevents"
	"github.com/headgate-io/headgate/sdk/wire"
)

// framing is how a body is divided into events.
type framing uint8

const (
	oneOpaque framing = iota // the body is one event
	oneJSON                  // one JSON value, or an array of events
	lines                    // NDJSON
	textLines
	prefixed     // a varint length before each event
	prefixedJSON // the same, each one JSON value: in sessions only

	// CloudEvents; in binary mode the body is the data of one event, and checked as what its media type says.
	structured
	batched
	binaryOpaque
	binaryJSON
	binaryText
)

// framings are the media types that mean the same on every stream; read only.
var framings = map[string]framing{
	"application/json":      oneJSON,
	wire.TypeNDJSON:         lines,
	"application/ndjson":    lines,
	"application/jsonl":     lines,
	"application/jsonlines": lines,
	"text/plain":            textLines,
	wire.TypePrefixed:       prefixed,
	cloudevents.TypeEvent:   structured,
	cloudevents.TypeBatch:   batched,
}

const acceptedTypes = "application/json, application/x-ndjson, application/jsonl, text/plain, " + wire.TypePrefixed + ", " +
	cloudevents.TypeEvent + ", " + cloudevents.TypeBatch

func (f framing) syntax() event.Syntax {
	switch f {
	case oneJSON, lines, prefixedJSON, structured, batched, binaryJSON:
		return event.JSON
	case textLines, binaryText:
		return event.Text
	}
	return event.Opaque
}

// framing finds the framing that a Content-Type means on a stream with settings s.
func (s *Settings) framing(contentType []byte) (framing, *refusal) {
	if bytes.IndexByte(contentType, ',') >= 0 {
		return 0, refuse(event.AmbiguousContentType, "send one media type in Content-Type")
	}
	var lower [64]byte
	name, params := mediaType(lower[:0], contentType)
	f, known := framings[string(name)]
	switch {
	case len(name) == 0:
		return 0, s.unsupported("there is no Content-Type, and it says how the body is divided into events")
	case !known && !s.opaque(name):
		return 0, s.unsupported("this stream does not take %q", shown(name))
	case !utf8Charset(params):
		return 0, s.unsupported("%q: the only charset is utf-8", shown(contentType))
	}
	return f, nil
}

// mediaType takes a Content-Type apart and appends its name in lower case to dst.
func mediaType(dst, contentType []byte) (name, params []byte) {
	name, params, _ = bytes.Cut(contentType, []byte{';'})
	return appendLower(dst, bytes.TrimSpace(name)), params
}

// unsupported refuses a media type and names those that are accepted.
func (s *Settings) unsupported(format string, args ...any) *refusal {
	types := s.MediaTypes
	if types == nil {
		types = defaultMediaTypes
	}
	accept := strings.Join(append([]string{acceptedTypes}, types...), ", ")
	no := refuse(event.UnsupportedMediaType, format, args...).with("Accept", accept)
	no.Problem.Detail += "; Content-Type is one of " + accept
	return no
}

// shown is as much of a client's text as an answer repeats.
func shown(text []byte) string { return string(text[:min(len(text), 80)]) }

// utf8Charset reports whether the parameters of a media type name no other charset than UTF-8.
func utf8Charset(params []byte) bool {
	for len(params) > 0 {
		var param []byte
		param, params, _ = bytes.Cut(params, []byte{';'})
		name, value, _ := bytes.Cut(bytes.TrimSpace(param), []byte{'='})
		if bytes.EqualFold(name, []byte("charset")) && !bytes.EqualFold(bytes.Trim(value, `"`), []byte("utf-8")) {
			return false
		}
	}
	return true
}

func appendLower(dst, src []byte) []byte {
	for _, c := range src {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		dst = append(dst, c)
	}
	return dst
}
