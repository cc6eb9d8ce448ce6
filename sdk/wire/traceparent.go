package wire

import (
	"encoding/binary"
	"encoding/hex"
)

// A traceparent of version 00 (W3C Trace Context) is 55 characters of text for 25 bytes: trace id, parent id
// and flags. Most requests bring or get one of their own, so it is packed.
const (
	traceText   = 55
	traceSize   = 25
	tracePrefix = "00-"
)

// Forms of a traceparent in its column: as the one before, packed, or its length plus traceLiteral.
const (
	traceSame    = 0
	traceShort   = 1
	traceLiteral = 2
)

// packTrace reports false for a text that would not come back byte for byte.
func packTrace(text []byte) (p [traceSize]byte, ok bool) {
	if len(text) != traceText {
		return p, false
	}
	_, err1 := hex.Decode(p[:16], text[3:35])
	_, err2 := hex.Decode(p[16:24], text[36:52])
	_, err3 := hex.Decode(p[24:], text[53:])
	if err1 != nil || err2 != nil || err3 != nil {
		return p, false
	}
	var again [traceText]byte
	return p, string(unpackTrace(again[:0], p[:])) == string(text)
}

func appendTrace(dst, text, prev []byte) []byte {
	if string(text) == string(prev) {
		return append(dst, traceSame)
	}
	if p, ok := packTrace(text); ok {
		return append(append(dst, traceShort), p[:]...)
	}
	return append(binary.AppendUvarint(dst, uint64(len(text))+traceLiteral), text...)
}

// parseTrace unpacks into memory of m; earlier pieces stay valid when that grows.
func (m *Meta) parseTrace(r *reader, prev []byte) []byte {
	switch n := r.uvarint(); n {
	case traceSame:
		return prev
	case traceShort:
		p := r.bytes(traceSize)
		if r.failed {
			return nil
		}
		from := len(m.texts)
		m.texts = unpackTrace(m.texts, p)
		return m.texts[from:len(m.texts):len(m.texts)]
	default:
		return r.bytes(n - traceLiteral)
	}
}

func unpackTrace(dst, p []byte) []byte {
	dst = append(dst, tracePrefix...)
	dst = append(hex.AppendEncode(dst, p[:16]), '-')
	dst = append(hex.AppendEncode(dst, p[16:24]), '-')
	return hex.AppendEncode(dst, p[24:])
}
