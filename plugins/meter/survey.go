package meter

// survey reads the body of a function for what settle must know.
func (m *module) survey(f *function, r *reader) {
	f.weight = weigh(r.localTypes())
	straight := true // only blocks were opened until here
	loops := m.loops[:0]
	inside := 0 // how many loops are open
	for depth := 1; depth > 0 && r.bad == ""; {
		in := r.next()
		if inside == 0 {
			f.outer += price(in)
		}
		switch in.op {
		case opLoop, opBlock, opIf:
			depth++
			loop := in.op == opLoop
			loops = append(loops, loop)
			if loop {
				f.lead = f.lead || straight && !f.loops
				f.loops = true
				inside++
			}
		case opEnd:
			depth--
			if depth > 0 {
				if loops[depth-1] {
					inside--
				}
				loops = loops[:depth-1]
			}
		case opCall:
			if at := m.own(in.index); at >= 0 {
				f.calls = append(f.calls, uint32(at))
			} else if inside == 0 {
				f.outer += costHost
			}
		case opCallIndirect:
			f.callsTable = true
		case opRefFunc:
			m.refer(r, in.index)
		}
		straight = straight && (in.op == opBlock || in.op == opLoop)
	}
	f.lead = f.lead && f.outer <= leadCost
	m.loops = loops
	if r.bad == "" && len(r.rest) > 0 {
		r.fail("goes on behind its end")
	}
}

// localTypes takes the declarations of a function's locals and returns how many there are.
func (r *reader) localTypes() (n uint64) {
	r.vector(func() {
		n += uint64(r.u32())
		r.valueType()
	})
	return n
}

// refer notes that a function can be called through the table.
func (m *module) refer(r *reader, index uint32) {
	m.known(r, index)
	if at := m.own(index); at >= 0 && r.bad == "" {
		m.functions[at].table = true
	}
}

// price is what an instruction costs by itself.
func price(in instruction) uint64 {
	switch op := in.op; {
	case op == opNop, op == opBlock, op == opElse, op == opEnd:
		return 0
	case op >= 0x6D && op <= 0x70, op >= 0x7F && op <= 0x82: // division of integers
		return costSlow
	case op == 0x91, op == 0x95, op == 0x9F, op == 0xA3: // square roots, division of floats
		return costSlow
	case op == opCallIndirect:
		return costIndirect
	case op == opMemoryGrow, op == prefixMisc && in.sub > 7: // and more by size
		return costSlow
	}
	return 1
}

// priceOf is what an instruction costs with what it calls.
func (m *module) priceOf(in instruction) uint64 {
	if in.op != opCall {
		return price(in)
	}
	at := m.own(in.index)
	if at < 0 {
		return costHost
	}
	return m.functions[at].cost
}
