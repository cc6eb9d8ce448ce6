package meter

import "encoding/binary"

// tables copies the table section, with TableCap as the most that a table may grow to.
func (m *module) tables(r *reader) (out []byte) {
	n := r.u32()
	out = binary.AppendUvarint(out, uint64(n))
	for ; n > 0 && r.bad == ""; n-- {
		out = append(out, r.byte())
		l := r.limits()
		if l.Flags > 1 {
			r.fail("a table that is shared or of 64 bits")
		}
		out = binary.AppendUvarint(append(out, 1), l.Min)
		// A maximum below the minimum stays one: it is for the compiler to refuse.
		out = binary.AppendUvarint(out, min(l.Max, max(TableCap, l.Min)))
	}
	return out
}

// globalTypes copies the globals with their first values, in which functions move.
func (m *module) globalTypes(r *reader) (out []byte) {
	n := r.u32()
	out = binary.AppendUvarint(out, uint64(n))
	for ; n > 0 && r.bad == ""; n-- {
		out = append(out, r.take(2)...)
		out = m.constant(out, r)
	}
	return out
}

// constant copies the code of a constant.
func (m *module) constant(out []byte, r *reader) []byte {
	for r.bad == "" {
		from := r.rest
		switch in := r.next(); in.op {
		case opEnd:
			return append(out, opEnd)
		case opRefFunc:
			m.refer(r, in.index)
			out = appendIndex(out, opRefFunc, m.shift(in.index))
			continue
		case opGlobalGet:
			if in.index >= m.globals {
				r.fail("an unknown global")
			}
		case opI32Const, opI64Const, opF32Const, opF64Const, opRefNull, prefixVector:
		default:
			r.fail("a constant that is computed")
		}
		if r.bad == "" {
			out = append(out, from[:len(from)-len(r.rest)]...)
		}
	}
	return out
}

// elements copies the element segments, in which functions move.
func (m *module) elements(r *reader) (out []byte) {
	n := r.u32()
	out = binary.AppendUvarint(out, uint64(n))
	for ; n > 0 && r.bad == ""; n-- {
		out = m.element(out, r)
	}
	return out
}

// element copies one segment. The bits of its kind: 1 it is not written into a table at the start, 2 a table or
// that it never is, 4 expressions instead of indices.
func (m *module) element(out []byte, r *reader) []byte {
	const passive, explicit, expressions = 1, 2, 4
	kind := r.u32()
	if kind > 7 {
		r.fail("an element segment of an unknown kind")
		return out
	}
	out = append(out, byte(kind))
	if kind&passive == 0 {
		if kind&explicit != 0 {
			out = binary.AppendUvarint(out, uint64(r.u32()))
		}
		out = m.constant(out, r)
	}
	if kind&(passive|explicit) != 0 {
		out = append(out, r.byte())
	}
	n := r.u32()
	out = binary.AppendUvarint(out, uint64(n))
	for ; n > 0 && r.bad == ""; n-- {
		if kind&expressions != 0 {
			out = m.constant(out, r)
			continue
		}
		index := r.u32()
		m.refer(r, index)
		out = binary.AppendUvarint(out, uint64(m.shift(index)))
	}
	return out
}

// data skips a data segment. The compiler makes room for as many as the count says, so they must be there.
func (m *module) data(r *reader) {
	const passive, explicit = 1, 2
	kind := r.u32()
	if kind > explicit {
		r.fail("a data segment of an unknown kind")
	}
	if kind == explicit {
		r.u32()
	}
	if kind != passive {
		m.constant(nil, r)
	}
	r.take(uint64(r.u32()))
}

// exports copies the exports, in which functions move.
func (m *module) exports(r *reader) (out []byte) {
	n := r.u32()
	out = binary.AppendUvarint(out, uint64(n))
	for ; n > 0 && r.bad == ""; n-- {
		name := r.name()
		kind, index := r.byte(), r.u32()
		switch kind {
		case KindFunction:
			m.known(r, index)
			index = m.shift(index)
		case KindGlobal:
			if index >= m.globals {
				r.fail("an unknown global is exported")
			}
		}
		out = append(binary.AppendUvarint(out, uint64(len(name))), name...)
		out = appendIndex(out, kind, index)
	}
	return out
}

// start copies which function is called at the start.
func (m *module) start(r *reader) []byte {
	index := r.u32()
	m.known(r, index)
	return binary.AppendUvarint(nil, uint64(m.shift(index)))
}
