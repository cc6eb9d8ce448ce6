package plugins

import "fmt"

// Limits of the instructions.
const (
	mostNesting    = 1_000     // blocks within one another
	mostTargets    = 4_096     // of a br_table
	mostTargetsAll = 1_000_000 // of all br_tables
)

// instructions is what the bodies of a module's functions hold, counted.
type instructions struct {
	nesting, branches peak // the index is that of the function body
	targets           uint64
	growsTable        bool
}

// Opcodes that have immediates of a kind of their own, or that are counted.
const (
	opBlock, opLoop, opIf, opEnd = 0x02, 0x03, 0x04, 0x0B

	opBranchTable = 0x0E
	opSelectTyped = 0x1C
	opI32Const    = 0x41
	opI64Const    = 0x42
	opF32Const    = 0x43
	opF64Const    = 0x44
	opRefNull     = 0xD0

	prefixMisc   = 0xFC
	prefixVector = 0xFD

	opTableGrow = 15 // behind prefixMisc
)

// count follows the instructions of one function, up to the end that closes it. An unknown one is a fault, since
// what stands behind it could not be told apart from its immediates.
func (c *instructions) count(r *reader, body int) {
	for depth := uint64(1); depth > 0 && r.bad == ""; {
		switch op := r.byte(); op {
		case opBlock, opLoop, opIf:
			r.blockType()
			c.nesting.see(depth, body)
			depth++
		case opEnd:
			depth--
		case opBranchTable:
			n := uint64(r.u32())
			c.branches.see(n, body)
			c.targets += n
			r.skipNumbers(n + 1)
		case prefixMisc:
			c.misc(r)
		case prefixVector:
			r.vectorImmediates(r.byte())
		default:
			r.immediates(op)
		}
	}
	if r.bad == "" && len(r.rest) > 0 {
		r.fail("goes on behind its end")
	}
}

func (c *instructions) misc(r *reader) {
	switch op := r.u32(); {
	case op <= 7: // conversions that saturate
	case op == 9 || op == 11 || op == 13 || op >= opTableGrow && op <= 17:
		r.skipNumber(5)
		c.growsTable = c.growsTable || op == opTableGrow
	case op == 8 || op == 10 || op == 12 || op == 14:
		r.skipNumbers(2)
	default:
		r.unknown(prefixMisc, op)
	}
}

// immediates skips those of an instruction without a prefix.
func (r *reader) immediates(op byte) {
	switch {
	case op <= 0x01, op == 0x05, op == 0x0F, op == 0x1A, op == 0x1B, op >= 0x45 && op <= 0xC4, op == 0xD1: // no immediates
	case op == 0x0C, op == 0x0D, op == 0x10, op >= 0x20 && op <= 0x26, op == 0x3F, op == 0x40, op == 0xD2: // an index
		r.skipNumber(5)
	case op == 0x11, op >= 0x28 && op <= 0x3E: // two indices, or alignment and offset
		r.skipNumbers(2)
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

// blockType takes the type of a block: none, a value type, or an index.
func (r *reader) blockType() {
	const none = 0x40
	if len(r.rest) > 0 && r.rest[0] > none && r.rest[0] < 0x80 {
		r.valueType()
		return
	}
	r.skipNumber(5)
}
