package plugins

import (
	"encoding/binary"
	"math"

	"github.com/headgate-io/headgate/event"
)

// passed reports whether a guest sees the header: credentials are none of its business.
func passed(h event.Attr) bool {
	switch string(h.Name) {
	case "authorization", "proxy-authorization", "cookie":
		return false
	}
	return len(h.Name) <= math.MaxUint16 && len(h.Value) <= math.MaxUint16
}

func headersSize(headers []event.Attr) (n int) {
	for _, h := range headers {
		if passed(h) {
			n += 4 + len(h.Name) + len(h.Value)
		}
	}
	return n
}

// putHeaders writes pairs of name and value, each with its length as u16 in front.
func putHeaders(dst []byte, headers []event.Attr) {
	for _, h := range headers {
		if passed(h) {
			dst = putText(putText(dst, h.Name), h.Value)
		}
	}
}

func putText(dst, p []byte) []byte {
	binary.LittleEndian.PutUint16(dst, uint16(len(p)))
	return dst[2+copy(dst[2:], p):]
}
