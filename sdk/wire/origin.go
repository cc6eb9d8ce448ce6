package wire

import (
	"encoding/binary"
	"math"
)

// This file: what the block says of the frame as a whole: its place, the requests its events came with, and
// the frames before it.

func appendFrameColumn(dst []byte, m *Meta) []byte {
	dst, start := openColumn(dst, colFrame)
	dst = binary.AppendUvarint(dst, uint64(m.Partition))
	dst = binary.AppendUvarint(dst, m.First)
	dst = binary.AppendUvarint(dst, m.TableVersion)
	dst = binary.AppendUvarint(dst, uint64(m.Framing))
	dst = binary.AppendUvarint(dst, m.RawLen)
	dst = binary.AppendUvarint(dst, m.DataLen)
	dst = append(binary.AppendUvarint(dst, uint64(len(m.Gateway))), m.Gateway...)
	dst = append(binary.AppendUvarint(dst, uint64(len(m.Stream))), m.Stream...)
	return closeColumn(dst, start)
}

func (m *Meta) parseFrame(r *reader) {
	m.parsePlace(r)
	m.Gateway = reuse(m.Gateway, r.bytes(r.uvarint()))
	m.Stream = reuse(m.Stream, r.bytes(r.uvarint()))
}

// parsePlace reads the numbers of the frame column, which come before its names.
func (m *Meta) parsePlace(r *reader) {
	m.Partition = uint32(r.atMost(math.MaxUint32))
	m.First = r.uvarint()
	m.TableVersion = r.uvarint()
	m.Framing = Framing(r.atMost(uint64(Prefixed)))
	m.RawLen = r.uvarint()
	m.DataLen = r.uvarint()
}

// reuse returns text as a string without an allocation when it is the same as the one before.
func reuse(before string, text []byte) string {
	if before == string(text) {
		return before
	}
	return string(text)
}

func appendRequests(dst []byte, requests []Request) []byte {
	if len(requests) == 0 {
		return dst
	}
	dst, start := openColumn(dst, colRequests)
	var prev Request
	for i := range requests {
		r := &requests[i]
		dst = binary.AppendUvarint(dst, uint64(r.Count))
		dst = binary.AppendUvarint(dst, zigzag(r.Time-prev.Time))
		dst = appendText(dst, r.ID, prev.ID)
		dst = appendTrace(dst, r.TraceParent, prev.TraceParent)
		dst = appendText(dst, r.Chain, prev.Chain)
		dst = appendText(dst, r.Source, prev.Source)
		prev = *r
	}
	return closeColumn(dst, start)
}

func (m *Meta) parseRequests(r *reader) {
	var prev Request
	for r.more() {
		prev = Request{
			Count:       uint32(r.atMost(math.MaxUint32)),
			Time:        prev.Time + unzigzag(r.uvarint()),
			ID:          r.text(prev.ID),
			TraceParent: m.parseTrace(r, prev.TraceParent),
			Chain:       r.text(prev.Chain),
			Source:      r.text(prev.Source),
		}
		m.Requests = append(m.Requests, prev)
	}
}

// appendRequestTexts appends a column of what few requests have.
func appendRequestTexts(dst []byte, id uint64, requests []Request, of func(*Request) []byte) []byte {
	some := false
	for i := range requests {
		some = some || len(of(&requests[i])) > 0
	}
	if !some {
		return dst
	}
	dst, start := openColumn(dst, id)
	var prev []byte
	for i := range requests {
		text := of(&requests[i])
		dst = appendText(dst, text, prev)
		prev = text
	}
	return closeColumn(dst, start)
}

func (m *Meta) parseRequestTexts(r *reader, set func(*Request, []byte)) {
	var prev []byte
	for i := range m.Requests {
		prev = r.text(prev)
		set(&m.Requests[i], prev)
	}
}

func countRequests(requests []Request) (n uint64) {
	for i := range requests {
		n += uint64(requests[i].Count)
	}
	return n
}

func appendAfter(dst []byte, m *Meta) []byte {
	if len(m.After) == 0 {
		return dst
	}
	dst, start := openColumn(dst, colAfter)
	for _, p := range m.After {
		dst = binary.AppendUvarint(dst, uint64(p.Partition))
		dst = binary.AppendUvarint(dst, p.Number)
		if p.Gateway == m.Gateway {
			dst = append(dst, 0)
			continue
		}
		dst = binary.AppendUvarint(dst, uint64(len(p.Gateway))+1)
		dst = append(dst, p.Gateway...)
	}
	return closeColumn(dst, start)
}

func (m *Meta) parseAfter(r *reader) {
	for r.more() {
		p := Predecessor{Partition: uint32(r.atMost(math.MaxUint32)), Number: r.uvarint(), Gateway: m.Gateway}
		if n := r.uvarint(); n > 0 {
			p.Gateway = string(r.bytes(n - 1))
		}
		m.After = append(m.After, p)
	}
}
