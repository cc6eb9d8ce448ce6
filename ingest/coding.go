package ingest

import (
	"bytes"

	"github.com/headgate-io/headgate/event"
)

// coding is a content coding (RFC 9110 section 8.4.1).
type coding uint8

const (
	gzipCoding coding = iota
	deflateCoding
	zstdCoding
	brotliCoding
	snappyCoding
	allCodings // how many there are
)

// codingNames are the names in Content-Encoding, and the codes of bodies that are not what they say; read only.
var codingNames = [allCodings]struct {
	name string
	bad  event.Code
}{
	gzipCoding:    {"gzip", event.BadGzip},
	deflateCoding: {"deflate", event.BadDeflate},
	zstdCoding:    {"zstd", event.BadZstd},
	brotliCoding:  {"br", event.BadBr},
	snappyCoding:  {"snappy", event.BadSnappy},
}

const acceptedCodings = "gzip, deflate, zstd, br, snappy, identity"

// codingOf finds a coding by its name in any case.
func codingOf(name []byte) (c coding, known bool) {
	var lower [8]byte
	if len(name) > len(lower) {
		return 0, false
	}
	name = appendLower(lower[:0], name)
	if string(name) == "x-gzip" { // RFC 9110 8.4.1.3
		return gzipCoding, true
	}
	for c := range allCodings {
		if codingNames[c].name == string(name) {
			return c, true
		}
	}
	return 0, false
}

// maxCodings is how many codings a body may have on top of one another.
const maxCodings = 2

// codings are the codings of a body in the order they were applied; the first n count.
type codings struct {
	applied [maxCodings]coding
	n       int
}

// add appends the codings of one Content-Encoding line.
func (c *codings) add(value []byte) *refusal {
	for len(value) > 0 {
		var name []byte
		name, value, _ = bytes.Cut(value, []byte{','})
		name = bytes.TrimSpace(name)
		if len(name) == 0 || bytes.EqualFold(name, []byte("identity")) {
			continue
		}
		next, known := codingOf(name)
		if !known {
			return refuse(event.UnsupportedCoding, "the coding %q of Content-Encoding is not one of %s", name[:min(len(name), 64)], acceptedCodings).
				with("Accept-Encoding", acceptedCodings)
		}
		if c.n == maxCodings {
			return refuse(event.UnsupportedCoding, "%q would be one of more than %d codings on top of one another", name, maxCodings).
				with("Accept-Encoding", acceptedCodings)
		}
		c.applied[c.n] = next
		c.n++
	}
	return nil
}
