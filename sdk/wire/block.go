package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
)

// castagnoli is read only.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendMeta appends the block of m. raw is the frame's events before compression, in m.Framing: a key found
// in the data of the event that introduces its route costs two bytes instead of itself. With raw nil nothing is
// looked for: such keys are those whose routes say so (Route.KeyAt). AppendMeta sorts
// m.Epochs and changes nothing else; what does not fit together in m is a bug of the caller and panics.
func AppendMeta(dst []byte, m *Meta, raw []byte) []byte {
	m.check()
	begin := len(dst)
	dst = append(dst, magic...)
	dst = appendFrameColumn(dst, m)
	dst = appendRoutes(dst, m, raw)
	dst = appendRequests(dst, m.Requests)
	dst = appendEventColumns(dst, m)
	dst = appendAfter(dst, m)
	dst = appendRequestTexts(dst, colTraceState, m.Requests, func(r *Request) []byte { return r.TraceState })
	dst = appendRequestTexts(dst, colClientID, m.Requests, func(r *Request) []byte { return r.ClientID })
	dst = appendRequestTexts(dst, colCaller, m.Requests, func(r *Request) []byte { return r.Caller })
	sum := crc32.Checksum(dst[begin:], castagnoli)
	dst, start := openColumn(dst, colSum)
	return closeColumn(binary.LittleEndian.AppendUint32(dst, sum), start)
}

func (m *Meta) check() {
	n := len(m.EventRoute)
	for _, column := range [...]int{len(m.IDs), len(m.Times), len(m.Attrs)} {
		if column != 0 && column != n {
			panic("BUG: wire: a column of Meta has another length than EventRoute")
		}
	}
	if n > 0 && int(slices.Max(m.EventRoute)) >= len(m.Routes) {
		panic("BUG: wire: EventRoute names a route that is not there")
	}
	if len(m.Requests) > 0 && countRequests(m.Requests) != uint64(n) {
		panic("BUG: wire: Requests do not add up to the number of events")
	}
}

// ParseMeta fills m, which it resets first, from a block. It takes any input, and memory in proportion to
// len(block) only. Keys that lie in the events are nil until ResolveKeys. After an error m is of no use but
// for the next ParseMeta or Reset.
func ParseMeta(block []byte, m *Meta) error {
	gateway, stream := m.Gateway, m.Stream
	m.Reset()
	m.Gateway, m.Stream = gateway, stream
	if !bytes.HasPrefix(block, []byte(magic)) {
		return fmt.Errorf("metadata block: %w: no %s in front", ErrMalformed, magic)
	}
	r := reader{b: block[len(magic):]}
	var last uint64
	for r.more() {
		before := len(block) - len(r.b)
		id := r.uvarint()
		column := reader{b: r.bytes(r.uvarint())}
		if r.failed {
			return fmt.Errorf("metadata block: column %d: %w", id, ErrTruncated)
		}
		if last == 0 && id != colFrame {
			return fmt.Errorf("metadata block: %w: column %d in front", ErrMalformed, id)
		}
		if id <= last {
			return fmt.Errorf("metadata block: %w: column %d after %d", ErrMalformed, id, last)
		}
		last = id
		if id == colSum {
			return m.finish(block[:before], column.b, r.b)
		}
		m.parseColumn(id, &column)
		if column.failed {
			return fmt.Errorf("metadata block: column %d: %w", id, ErrMalformed)
		}
	}
	return fmt.Errorf("metadata block: %w: no checksum", ErrTruncated)
}

// finish checks what no column can see alone.
func (m *Meta) finish(summed, sum, rest []byte) error {
	n := len(m.EventRoute)
	switch {
	case len(sum) != 4 || len(rest) > 0:
		return fmt.Errorf("metadata block: %w: the checksum is not its end", ErrMalformed)
	case binary.LittleEndian.Uint32(sum) != crc32.Checksum(summed, castagnoli):
		return fmt.Errorf("metadata block: %w: checksum differs", ErrMalformed)
	case len(m.Requests) > 0 && countRequests(m.Requests) != uint64(n):
		return fmt.Errorf("metadata block: %w: requests do not add up to %d events", ErrMalformed, n)
	}
	return nil
}

func (m *Meta) parseColumn(id uint64, r *reader) {
	switch id {
	case colFrame:
		m.parseFrame(r)
	case colEpochs:
		m.parseEpochs(r)
	case colKeys:
		m.parseKeys(r)
	case colSlots:
		for i := range m.Routes {
			m.Routes[i].Slot = m.parseSlot(r)
		}
	case colChildren:
		for i := range m.Routes {
			m.Routes[i].Child = m.parseSlot(r)
		}
	case colEventRoute:
		m.parseEventRoute(r)
	case colRequests:
		m.parseRequests(r)
	case colIDs:
		m.parseIDs(r)
	case colTimes:
		m.parseTimes(r)
	case colAttrs:
		m.parseAttrs(r)
	case colAfter:
		m.parseAfter(r)
	case colTraceState:
		m.parseRequestTexts(r, func(to *Request, text []byte) { to.TraceState = text })
	case colClientID:
		m.parseRequestTexts(r, func(to *Request, text []byte) { to.ClientID = text })
	case colCaller:
		m.parseRequestTexts(r, func(to *Request, text []byte) { to.Caller = text })
	default:
		return
	}
	if len(r.b) > 0 { // more values than the column has places
		r.fail()
	}
}
