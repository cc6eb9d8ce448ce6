package meter

import "fmt"

// instruction is one instruction of a function's body, with its immediates.
type instruction struct {
	op     byte
	sub    uint32 // the opcode behind a prefix
	index  uint32 // the first immediate when it is an index or a label; of opBranchTable how many labels besides the default
	result int64  // of a block: its type, see blockType
	labels reader // of opBranchTable: the labels
}

// Opcodes that have immediates of a kind of their own, or that are counted or rewritten.
const (
	opUnreachable, opNop, opBlock, opLoop, opIf, opElse, opEnd = 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x0B

	opBranch, opBranchIf, opBranchTable, opReturn = 0x0C, 0x0D, 0x0E, 0x0F

	opCall, opCallIndirect = 0x10, 0x11

	opDrop        = 0x1A
	opSelectTyped = 0x1C
	opLocalGet    = 0x20
	opLocalTee    = 0x22
	opGlobalGet   = 0x23
	opGlobalSet   = 0x24
	opTableSet    = 0x26
	opMemoryGrow  = 0x40
	opI32Const    = 0x41
	opI64Const    = 0x42
	opF32Const    = 0x43
	opF64Const    = 0x44
	opRefNull     = 0xD0
	opRefFunc     = 0xD2

	prefixMisc   = 0xFC
	prefixVector = 0xFD
)

// Opcodes behind prefixMisc.
const (
	miscMemoryInit, miscMemoryCopy, miscMemoryFill = 8, 10, 11
	miscTableInit, miscTableCopy                   = 12, 14
	miscTableGrow, miscTableFill                   = 15, 17
)

// next takes one instruction. An unknown one is a fault, since what stands behind it could not be told apart from
// its immediates.
func (r *reader) next() (in instruction) {
	switch in.op = r.byte(); in.op {
	case opBlock, opLoop, opIf:
		in.result = r.blockType()
	case opBranchTable:
		in.index = r.u32()
		in.labels = reader{rest: r.rest}
		r.skipNumbers(uint64(in.index) + 1)
	case prefixMisc:
		in.sub = r.u32()
		r.miscImmediates(in.sub)
	case prefixVector:
		in.sub = uint32(r.byte())
		r.vectorImmediates(byte(in.sub))
	default:
		in.index = r.immediates(in.op)
	}
	return in
}

func (r *reader) miscImmediates(op uint32) {
	switch {
	case op <= 7: // conversions that saturate
	case op == 9 || op == miscMemoryFill || op == 13 || op >= miscTableGrow && op <= miscTableFill:
		r.skipNumber(5)
	case op == miscMemoryInit || op == miscMemoryCopy || op == miscTableInit || op == miscTableCopy:
		r.skipNumbers(2)
	default:
		r.unknown(prefixMisc, op)
	}
}

// immediates skips those of an instruction without a prefix, and returns the first if it is an index.
func (r *reader) immediates(op byte) (index uint32) {
	switch {
	case op <= opNop, op == opElse, op == opReturn, op == opDrop, op == 0x1B, op >= 0x45 && op <= 0xC4, op == 0xD1: // none
	case op == opBranch, op == opBranchIf, op == opCall, op >= opLocalGet && op <= opTableSet, op == opRefFunc:
		return r.u32()
	case op == opCallIndirect:
		index = r.u32()
		r.skipNumber(5)
	case op >= 0x28 && op <= 0x3E: // alignment and offset
		r.skipNumbers(2)
	case op == 0x3F, op == opMemoryGrow:
		r.skipNumber(5)
	case op == opEnd:
	case op == opSelectTyped:
		r.vector(r.valueType)
	case op == opI32Const:
		r.skipNumber(5)
	case op == opI64Const:
		r.skipNumber(10)
	case op == opF32Const:
		r.take(4)
	case op == opF64Const:
		r.take(8)
	case op == opRefNull:
		r.valueType()
	default:
		r.unknown(uint32(op))
	}
	return index
}

// vectorImmediates skips those of an instruction behind prefixVector. Opcodes from 0x80 on are written with a byte
// 0x01 behind, which is left, as by the compiler: it reads as an instruction that does nothing.
func (r *reader) vectorImmediates(op byte) {
	switch {
	case op <= 0x0B, op == 0x5C, op == 0x5D: // loads and stores
		r.skipNumbers(2)
	case op == 0x0C, op == 0x0D: // a constant, a shuffle
		r.take(16)
	case op >= 0x15 && op <= 0x22: // lanes
		r.byte()
	case op >= 0x54 && op <= 0x5B: // loads and stores of lanes
		r.skipNumbers(2)
		r.byte()
	}
}

func (r *reader) unknown(op ...uint32) { r.fail(fmt.Sprintf("unknown instruction %#x", op)) }

// skipNumber skips LEB128 of at most that many bytes.
func (r *reader) skipNumber(most int) {
	for n := range r.rest[:min(len(r.rest), most)] {
		if r.rest[n] < 0x80 {
			r.rest = r.rest[n+1:]
			return
		}
	}
	r.fail("a number is too long, or cut off")
}

// skipNumbers skips n numbers of 32 bits.
func (r *reader) skipNumbers(n uint64) {
	for ; n > 0 && r.bad == ""; n-- {
		r.skipNumber(5)
	}
}

// valueType takes a type of one byte. Types of more bytes, which some compilers read unasked, are a fault.
func (r *reader) valueType() {
	if t := r.byte(); r.bad == "" && valueTypeName(t) == "unknown" {
		r.fail(fmt.Sprintf("unknown value type %#x", t))
	}
}

// noType is what blockType returns for a block that is given a value type or none.
const noType = -1

// blockType takes the type of a block: none, a value type, or the index of a type, which it returns.
func (r *reader) blockType() int64 {
	const none = 0x40
	switch {
	case len(r.rest) > 0 && r.rest[0] == none:
		r.byte()
		return noType
	case len(r.rest) > 0 && r.rest[0] > none && r.rest[0] < 0x80:
		r.valueType()
		return noType
	}
	// A signed number of 33 bits that is not negative. As an unsigned one it has a bit more than an index may have.
	index := r.unsigned(33)
	if index >= 1<<31 {
		r.fail("a block's type is out of range")
	}
	return int64(index)
}
