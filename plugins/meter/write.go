package meter

import (
	"encoding/binary"
	"fmt"
	"math"
)

// write puts the module together again.
func (m *module) write(size int) ([]byte, error) {
	code, err := m.writeCode(size)
	if err != nil {
		return nil, err
	}
	yield := m.typeOf(functionType{"\x01\x7E", "\x01\x7E"})
	refuel := m.typeOf(functionType{"\x00", "\x00"})
	charge := m.typeOf(functionType{"\x01\x7F", "\x01\x7F"})

	in := binary.AppendUvarint(nil, uint64(len(YieldModule)))
	in = binary.AppendUvarint(append(in, YieldModule...), uint64(len(YieldName)))
	in = binary.AppendUvarint(append(append(in, YieldName...), KindFunction), uint64(yield))

	var functions []byte
	for helper := range helpers {
		typ := charge
		if helper == helperRefuel {
			typ = refuel
		}
		functions = binary.AppendUvarint(functions, uint64(typ))
	}

	globals := []byte{0x7E, 1, opI64Const} // i64, mutable
	globals = append(appendSigned(globals, Slice), opEnd, 0x7E, 1, opI64Const)
	globals = append(appendSigned(globals, Depth), opEnd)

	out := append(make([]byte, 0, size), moduleHeader...)
	out = m.extend(out, sectionType, len(m.moreTypes), m.encodeTypes())
	out = m.extend(out, sectionImport, 1, in)
	out = m.extend(out, sectionFunction, helpers, functions)
	out = m.keep(out, sectionTable)
	out = m.keep(out, sectionMemory)
	out = m.extend(out, sectionGlobal, 2, globals)
	for _, id := range []byte{sectionExport, sectionStart, sectionElement, sectionDataCount} {
		out = m.keep(out, id)
	}
	out = appendSection(out, sectionCode, code)
	return m.keep(out, sectionData), nil
}

func (m *module) encodeTypes() (out []byte) {
	for _, t := range m.moreTypes {
		out = append(out, 0x60)
		out = append(append(out, t.params...), t.results...)
	}
	return out
}

// extend appends a section that is a vector, with n more entries.
func (m *module) extend(out []byte, id byte, n int, more []byte) []byte {
	r := &reader{rest: m.sections[id]}
	count := uint32(0)
	if m.sections[id] != nil {
		count = r.u32()
	}
	content := binary.AppendUvarint(nil, uint64(count)+uint64(n))
	return appendSection(out, id, content, r.rest, more)
}

// keep appends a section as it is, if there is one.
func (m *module) keep(out []byte, id byte) []byte {
	if m.sections[id] == nil {
		return out
	}
	return appendSection(out, id, m.sections[id])
}

func appendSection(out []byte, id byte, parts ...[]byte) []byte {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	out = binary.AppendUvarint(append(out, id), uint64(size))
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func (m *module) writeCode(size int) ([]byte, error) {
	out := binary.AppendUvarint(make([]byte, 0, size), uint64(len(m.functions)+helpers))
	b := &body{m: m}
	for i := range m.functions {
		b.f, b.out = &m.functions[i], b.out[:0]
		if err := b.write(); err != nil {
			return nil, fmt.Errorf("function %d: %w", i, err)
		}
		out = appendBody(out, b.out)
	}
	for helper := range helpers {
		out = appendBody(out, m.helperBody(helper))
	}
	return out, nil
}

func appendBody(out, body []byte) []byte {
	return append(binary.AppendUvarint(out, uint64(len(body))), body...)
}

// helperBody is the code of a helper, without locals.
func (m *module) helperBody(helper int) []byte {
	out := []byte{0}
	switch helper {
	case helperRefuel:
		out = appendIndex(out, opGlobalGet, m.depth())
		out = append(out, opI64Const, 0, 0x53, opIf, 0x40, opI64Const)
		out = appendIndex(appendSigned(out, math.MinInt64), opCall, m.yield())
		out = append(out, opDrop, opUnreachable, opEnd)
		out = appendIndex(out, opGlobalGet, m.fuel())
		out = appendIndex(out, opCall, m.yield())
		return append(appendIndex(out, opGlobalSet, m.fuel()), opEnd)
	case helperBytes:
		return m.chargeBody(out, math.MaxInt32, -bytesShift)
	case helperPages:
		return m.chargeBody(out, 1<<16, pageShift-bytesShift)
	default:
		return m.chargeBody(out, TableCap, 0)
	}
}

// pageShift makes bytes of pages.
const pageShift = 16

// chargeBody takes fuel off by the parameter, which counts for most at most, since a larger one is refused or traps.
func (m *module) chargeBody(out []byte, most int64, shift int) []byte {
	out = appendIndex(out, opGlobalGet, m.fuel())
	for range 2 { // the parameter and most, for select and for its condition
		out = append(out, opLocalGet, 0, opI32Const)
		out = appendSigned(out, most)
	}
	out = append(out, 0x49, 0x1B, 0xAD, opI64Const) // i32.lt_u, select, i64.extend_i32_u
	if shift < 0 {
		out = append(appendSigned(out, int64(-shift)), 0x88) // i64.shr_u
	} else {
		out = append(appendSigned(out, int64(shift)), 0x86) // i64.shl
	}
	out = appendIndex(append(out, 0x7D), opGlobalSet, m.fuel()) // i64.sub
	out = m.appendRefuel(appendIndex(out, opGlobalGet, m.fuel()))
	return append(out, opLocalGet, 0, opEnd)
}
