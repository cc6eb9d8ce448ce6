package meter

import (
	"encoding/binary"
	"fmt"
)

// Helpers that Rewrite adds behind the functions of the module.
const (
	helperRefuel   = iota // () -> (): asks the host to go on
	helperBytes           // (i32) -> (i32): takes fuel off for so many bytes; returns its parameter
	helperPages           // the same for pages of memory
	helperElements        // the same for elements of a table
	helpers
)

// body writes the metered form of one function.
type body struct {
	m   *module
	f   *function
	out []byte

	frames []frame
	spans  []span
}

// frame is an open block; span is the index of what its instructions are paid with.
type frame struct{ span int }

// span is code that is paid for at once: where its cost is to be written in out, and what it is.
type span struct {
	at   int
	cost uint64
}

// write appends the function to out.
func (b *body) write() error {
	r := &reader{rest: b.f.code}
	all := r.rest
	r.localTypes()
	b.copy(all, r)
	b.enter()
	if b.f.counted {
		b.out = append(append(b.out, opBlock), b.blockOf(b.m.types[b.f.typ].results)...)
	}
	for len(b.frames) > 0 && r.bad == "" {
		from := r.rest
		in := r.next()
		if r.bad != "" {
			break
		}
		b.instruction(r, in, from)
	}
	if r.bad != "" {
		return fmt.Errorf("function body: %s", r.bad)
	}
	for _, s := range b.spans {
		if s.at > 0 {
			putCost(b.out[s.at:], s.cost)
		}
	}
	return nil
}

// copy appends what r has taken since it was at from.
func (b *body) copy(from []byte, r *reader) { b.out = append(b.out, from[:len(from)-len(r.rest)]...) }

// enter writes what is paid on entry.
func (b *body) enter() {
	b.frames = append(b.frames[:0], frame{0})
	b.spans = append(b.spans[:0], span{})
	fuel := !b.f.free && !b.f.lead
	if fuel {
		b.spans[0].at = b.take()
	}
	if b.f.counted {
		b.out = appendGlobalAdd(b.out, b.m.depth(), -int64(b.f.weight))
	}
	if !fuel && !b.f.counted {
		return
	}
	switch {
	case fuel && b.f.counted: // one branch for both
		b.out = appendIndex(b.out, opGlobalGet, b.m.fuel())
		b.out = appendIndex(b.out, opGlobalGet, b.m.depth())
		b.out = append(b.out, 0x84) // i64.or: below zero when either is
	case fuel:
		b.out = appendIndex(b.out, opGlobalGet, b.m.fuel())
	default:
		b.out = appendIndex(b.out, opGlobalGet, b.m.depth())
	}
	b.out = b.m.appendRefuel(b.out)
}

// take writes code that takes a cost off the fuel, and returns where the cost is to be written.
func (b *body) take() (at int) {
	b.out = appendIndex(b.out, opGlobalGet, b.m.fuel())
	b.out = append(b.out, opI64Const)
	at = len(b.out)
	b.out = append(b.out, 0, 0, 0, 0, 0, 0x7D) // i64.sub
	b.out = appendIndex(b.out, opGlobalSet, b.m.fuel())
	return at
}

// appendRefuel appends code that takes a number off the stack and refuels if it is below zero.
func (m *module) appendRefuel(out []byte) []byte {
	out = append(out, opI64Const, 0, 0x53, opIf, 0x40) // i64.lt_s
	out = appendIndex(out, opCall, m.helper(helperRefuel))
	return append(out, opEnd)
}

// instruction writes one instruction, which starts at from.
func (b *body) instruction(r *reader, in instruction, from []byte) {
	top := len(b.frames) - 1
	b.spans[b.frames[top].span].cost += b.m.priceOf(in)
	switch in.op {
	case opBlock, opIf, opLoop:
		if in.result >= int64(len(b.m.types)) {
			r.fail("a block of an unknown type")
		}
		b.copy(from, r)
		b.open(in.op)
		return
	case opEnd:
		b.frames = b.frames[:top]
		if top == 0 && b.f.counted {
			b.out = append(b.out, opEnd)
			b.out = appendGlobalAdd(b.out, b.m.depth(), int64(b.f.weight))
		}
	case opReturn:
		if b.f.counted {
			b.out = appendIndex(b.out, opBranch, uint32(top))
			return
		}
	case opBranch, opBranchIf:
		b.label(r, in.index)
	case opBranchTable:
		for labels := in.labels; r.bad == "" && len(labels.rest) > len(r.rest); {
			if b.label(r, labels.u32()); labels.bad != "" {
				r.fail(labels.bad)
			}
		}
	case opCall, opRefFunc:
		b.m.known(r, in.index)
		b.out = appendIndex(b.out, in.op, b.m.shift(in.index))
		return
	case opCallIndirect:
		if int64(in.index) >= int64(len(b.m.types)) {
			r.fail("a call of an unknown type")
		}
	case opGlobalGet, opGlobalSet:
		if in.index >= b.m.globals {
			r.fail("an unknown global")
		}
	case opMemoryGrow:
		b.out = appendIndex(b.out, opCall, b.m.helper(helperPages))
	case prefixMisc:
		b.bulk(in.sub)
	}
	if r.bad == "" {
		b.copy(from, r)
	}
}

// bulk writes the charge for an instruction that takes time by its last operand.
func (b *body) bulk(op uint32) {
	switch op {
	case miscMemoryInit, miscMemoryCopy, miscMemoryFill:
		b.out = appendIndex(b.out, opCall, b.m.helper(helperBytes))
	case miscTableInit, miscTableCopy, miscTableGrow, miscTableFill:
		b.out = appendIndex(b.out, opCall, b.m.helper(helperElements))
	}
}

// open enters a block; a loop pays at the start of each round.
func (b *body) open(op byte) {
	at := b.frames[len(b.frames)-1].span
	if op != opLoop {
		b.frames = append(b.frames, frame{at})
		return
	}
	if at != 0 || !b.f.lead || b.spans[0].at != 0 {
		at = len(b.spans)
		b.spans = append(b.spans, span{})
	}
	b.spans[at].cost++
	b.spans[at].at = b.take()
	b.out = appendIndex(b.out, opGlobalGet, b.m.fuel())
	b.out = b.m.appendRefuel(b.out)
	b.frames = append(b.frames, frame{at})
}

// label checks that a branch stays within the function.
func (b *body) label(r *reader, label uint32) {
	if int64(label) >= int64(len(b.frames)) {
		r.fail("a branch out of the function")
	}
}

// blockOf is the encoded type of a block without parameters and with these results.
func (b *body) blockOf(results string) []byte {
	switch results[0] {
	case 0:
		return []byte{0x40}
	case 1:
		return []byte(results[1:2])
	}
	return appendSigned(nil, int64(b.m.typeOf(functionType{params: "\x00", results: results})))
}

// costSize is the size of a cost in code. It is written last, in a form of fixed length.
const costSize = 5

func putCost(at []byte, cost uint64) {
	for i := range costSize - 1 {
		at[i] = byte(cost>>(7*i))&0x7F | 0x80
	}
	at[costSize-1] = byte(cost>>(7*(costSize-1))) & 0x3F
}

func appendIndex(out []byte, op byte, index uint32) []byte {
	return binary.AppendUvarint(append(out, op), uint64(index))
}

func appendGlobalAdd(out []byte, global uint32, n int64) []byte {
	out = appendIndex(out, opGlobalGet, global)
	out = appendSigned(append(out, opI64Const), n)
	return appendIndex(append(out, 0x7C), opGlobalSet, global) // i64.add
}

// appendSigned appends signed LEB128.
func appendSigned(out []byte, v int64) []byte {
	for {
		b := byte(v & 0x7F)
		v >>= 7
		if v == 0 && b&0x40 == 0 || v == -1 && b&0x40 != 0 {
			return append(out, b)
		}
		out = append(out, b|0x80)
	}
}
