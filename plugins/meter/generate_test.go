package meter

import (
	"math/rand/v2"
)

// generator makes up modules that are valid, use everything that is rewritten, and end: each function and each
// round of a loop takes from a global, and when that is below zero everything returns.
type generator struct {
	*rand.Rand
	out    []byte
	labels []bool // that are open: whether a branch there needs no values
	result int    // type of the function
	own    []int  // type of each function
}

// Types of generated functions: the first four; the others are for blocks.
var genTypes = []functionType{
	{"\x01\x7F", "\x01\x7F"}, {"\x01\x7F", "\x01\x7E"}, {"\x01\x7F", "\x02\x7F\x7E"}, {"\x01\x7F", "\x00"}, {"\x00", "\x02\x7F\x7E"},
}

const (
	genImports = 2 // of type 0
	genI32     = 3 // locals of each function behind its parameter, which is an i32
	genI64     = 3
)

// generate returns the module of a seed. It exports memory, and as "run" a function of type 0.
func generate(seed uint64) []byte {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 7)), own: []int{0}}
	for range 1 + g.IntN(6) {
		g.own = append(g.own, g.IntN(4))
	}
	n := byte(len(g.own))
	types, functions, code := []byte{byte(len(genTypes))}, []byte{n}, []byte{n}
	for _, t := range genTypes {
		types = append(append(append(types, 0x60), t.params...), t.results...)
	}
	for _, t := range g.own {
		functions = append(functions, byte(t))
		code = appendBody(code, g.function(t))
	}
	table := []byte{1, 0x70, 0, n + 4}
	if g.IntN(2) == 0 {
		table = []byte{1, 0x70, 1, n + 4, 40}
	}
	out := appendSection([]byte(moduleHeader), sectionCustom, []byte("\x04note\xFF\xFF"))
	out = appendSection(out, sectionType, types)
	out = appendSection(out, sectionImport, []byte("\x02\x01h\x01a\x00\x00\x01h\x01b\x00\x00"))
	out = appendSection(out, sectionFunction, functions)
	out = appendSection(out, sectionTable, table)
	out = appendSection(out, sectionMemory, []byte("\x01\x01\x01\x03"))
	// What is left to do, a number, and a reference to the first function.
	out = appendSection(out, sectionGlobal, []byte("\x03\x7F\x01\x41\x00\x0B\x7E\x01\x42\x05\x0B\x70\x01\xD2\x02\x0B"))
	out = appendSection(out, sectionExport, []byte("\x03\x03run\x00\x02\x06memory\x02\x00\x04left\x03\x00"))
	out = appendSection(out, sectionElement, g.segments(n))
	out = appendSection(out, sectionDataCount, []byte{2})
	out = appendSection(out, sectionCode, code)
	return appendSection(out, sectionData, []byte("\x02\x00\x41\x08\x0B\x04abcd\x01\x03xyz"))
}

// segments are seven, one of each kind but the third, whose first covers all functions. Segment 1 is passive.
func (g *generator) segments(n byte) []byte {
	out := append([]byte{7, 0, opI32Const, 0, opEnd}, n)
	for i := range n {
		out = append(out, genImports+i)
	}
	out = append(out, "\x01\x00\x02\x02\x01"...)                      // passive
	out = append(out, "\x02\x00\x41\x01\x0B\x00\x01\x02"...)          // with a table
	out = append(out, "\x03\x00\x01\x02"...)                          // declared only
	out = append(out, "\x04\x41\x02\x0B\x01\xD2\x02\x0B"...)          // expressions
	out = append(out, "\x05\x70\x02\xD0\x70\x0B\xD2\x03\x0B"...)      // passive
	return append(out, "\x06\x00\x41\x03\x0B\x70\x01\xD2\x02\x0B"...) // with a table
}

func (g *generator) op(code ...byte) { g.out = append(g.out, code...) }

func (g *generator) i32(v int64) { g.out = appendSigned(append(g.out, opI32Const), v) }
func (g *generator) i64(v int64) { g.out = appendSigned(append(g.out, opI64Const), v) }

func (g *generator) function(typ int) []byte {
	g.out, g.result, g.labels = []byte{2, genI32, 0x7F, genI64, 0x7E}, typ, []bool{typ == 3}
	g.spend()
	g.op(opIf, 0x40)
	g.zeros()
	g.op(opReturn, opEnd)
	g.statements(3)
	g.results()
	g.op(opEnd)
	return g.out
}

// spend leaves whether nothing is left to do.
func (g *generator) spend() {
	g.op(opGlobalGet, 0, opI32Const, 1, 0x6B, opGlobalSet, 0, opGlobalGet, 0, opI32Const, 0, 0x48)
}

func (g *generator) zeros() {
	if g.result == 0 || g.result == 2 {
		g.i32(0)
	}
	if g.result == 1 || g.result == 2 {
		g.i64(0)
	}
}

func (g *generator) results() {
	if g.result == 0 || g.result == 2 {
		g.value32(3)
	}
	if g.result == 1 || g.result == 2 {
		g.value64(3)
	}
}

func (g *generator) local32() byte { return byte(g.IntN(1 + genI32)) }
func (g *generator) local64() byte { return byte(1 + genI32 + g.IntN(genI64)) }

// value32 leaves an i32.
func (g *generator) value32(depth int) {
	if depth == 0 {
		g.op(opLocalGet, g.local32())
		return
	}
	depth--
	switch g.IntN(14) {
	case 0:
		g.i32(int64(int32(g.Uint32())) >> g.IntN(32))
	case 1, 2:
		g.value32(depth)
		g.value32(depth)
		g.op(0x6A + byte(g.IntN(15))) // from i32.add to i32.rotr; may divide by zero
	case 3:
		g.address(depth)
		g.op(0x28, 2, byte(g.IntN(9)))
	case 4:
		g.value64(depth)
		g.op(0xA7) // i32.wrap_i64
	case 5:
		g.value32(depth)
		g.op(opCall, byte(g.IntN(genImports+1))) // the last is the first of its own, of type 0
	case 6:
		g.value32(depth)
		g.op(opIf, 0x7F)
		g.labels = append(g.labels, false)
		g.value32(depth)
		g.op(opElse)
		g.value32(depth)
		g.close()
	case 7:
		g.op(opBlock, 0x7F)
		g.labels = append(g.labels, false)
		g.value32(depth)
		g.value32(depth)
		g.op(opBranchIf, 0)
		g.close()
	case 8:
		g.value32(depth)
		g.op(opLoop, 0) // with a parameter and a result
		g.labels = append(g.labels, false)
		g.op(opI32Const, 3, 0x6A)
		g.close()
	case 9:
		g.i32(int64(g.IntN(2)))
		g.op(opMemoryGrow, 0)
	case 10:
		g.op(opRefNull, 0x70)
		g.i32(int64(g.IntN(3)))
		g.op(prefixMisc, miscTableGrow, 0)
	case 11:
		g.op(0xFD, 0x0C) // v128.const
		for range 16 {
			g.op(byte(g.IntN(256)))
		}
		g.op(0xFD, 0x1B, byte(g.IntN(4))) // i32x4.extract_lane
	case 12:
		g.value32(depth)
		g.i32(int64(g.IntN(9)))
		g.op(opCallIndirect, 0, 0) // may be of another type, or none
	default:
		g.op(opLocalGet, g.local32())
	}
}

// value64 leaves an i64.
func (g *generator) value64(depth int) {
	if depth == 0 {
		g.op(opLocalGet, g.local64())
		return
	}
	depth--
	switch g.IntN(6) {
	case 0:
		g.i64(int64(g.Uint64()) >> g.IntN(64))
	case 1, 2:
		g.value64(depth)
		g.value64(depth)
		g.op(0x7C + byte(g.IntN(3)))
	case 3:
		g.value32(depth)
		g.op(0xAC) // i64.extend_i32_s
	case 4:
		g.op(opGlobalGet, 1)
	default:
		g.op(opLocalGet, g.local64())
	}
}

// address leaves one that is in the memory as a rule.
func (g *generator) address(depth int) {
	g.value32(depth)
	g.i32(0xFFFF)
	g.op(0x71)
}

func (g *generator) close() {
	g.labels = g.labels[:len(g.labels)-1]
	g.op(opEnd)
}

func (g *generator) statements(depth int) {
	for range 1 + g.IntN(4) {
		g.statement(depth)
	}
}

func (g *generator) statement(depth int) {
	if depth == 0 {
		g.value32(2)
		g.op(0x21, g.local32())
		return
	}
	switch g.IntN(16) {
	case 0, 1:
		g.value32(depth)
		g.op(0x21, g.local32())
	case 2:
		g.value64(depth)
		g.op(0x21, g.local64())
	case 3:
		g.address(depth)
		g.value64(depth)
		g.op(0x37, 3, byte(g.IntN(9)))
	case 4, 5:
		g.loop(depth)
	case 6:
		g.op(opBlock, 0x40)
		g.labels = append(g.labels, true)
		g.statements(depth - 1)
		g.leave(depth)
		g.statements(depth - 1)
		g.close()
	case 7:
		g.table(depth)
	case 8:
		g.value32(depth)
		g.op(opIf, 0x40)
		g.labels = append(g.labels, true)
		g.results()
		g.op(opReturn)
		g.close()
	case 9:
		g.bulk()
	case 10:
		g.call(depth)
	case 11:
		g.value64(depth)
		g.op(opGlobalSet, 1)
	case 12:
		g.op(opBlock, 4) // two results
		g.labels = append(g.labels, false)
		g.value32(1)
		g.value64(1)
		g.close()
		g.op(0x21, g.local64(), 0x21, g.local32())
	case 13:
		g.value32(depth)
		g.op(opDrop)
	case 14:
		g.op(opRefFunc, byte(genImports+g.IntN(2)), opGlobalSet, 2)
	default:
		g.value32(1)
		g.i32(77)
		g.op(0x46, opIf, 0x40, opUnreachable, opEnd)
	}
}

// leave branches to some open block under a condition.
func (g *generator) leave(depth int) {
	to := g.IntN(len(g.labels))
	if g.labels[len(g.labels)-1-to] {
		g.value32(depth - 1)
		g.op(opBranchIf, byte(to))
	}
}

func (g *generator) loop(depth int) {
	g.op(opBlock, 0x40, opLoop, 0x40)
	g.labels = append(g.labels, true, true)
	g.spend()
	g.op(opBranchIf, 1)
	g.statements(depth - 1)
	g.leave(depth)
	if g.IntN(2) == 0 {
		g.value32(depth - 1)
		g.op(opBranchIf, 0)
	} else {
		g.op(opBranch, 0)
	}
	g.close()
	g.close()
}

func (g *generator) table(depth int) {
	g.op(opBlock, 0x40, opBlock, 0x40)
	g.labels = append(g.labels, true, true)
	g.value32(depth - 1)
	g.op(opBranchTable, 3, 0, 1, 0, 1)
	g.close()
	g.statements(depth - 1)
	g.close()
}

// bulk writes one of the instructions that pay by size.
func (g *generator) bulk() {
	g.i32(int64(g.IntN(1000)))
	switch g.IntN(7) {
	case 0:
		g.i32(7)
		g.i32(int64(g.IntN(5000)))
		g.op(prefixMisc, miscMemoryFill, 0)
	case 1:
		g.i32(int64(g.IntN(5000)))
		g.i32(int64(g.IntN(5000)))
		g.op(prefixMisc, miscMemoryCopy, 0, 0)
	case 2:
		g.op(opDrop)
		for _, v := range []int{100, 1, 2} {
			g.i32(int64(v))
		}
		g.op(prefixMisc, miscMemoryInit, 1, 0)
	case 3:
		g.op(opDrop, opI32Const, byte(g.IntN(3)), opGlobalGet, 2, opI32Const, 2, prefixMisc, miscTableFill, 0)
	case 4:
		g.op(opDrop, opI32Const, 1, opI32Const, 2, opI32Const, 2, prefixMisc, miscTableCopy, 0, 0)
	case 5:
		g.op(opDrop, opI32Const, 2, opI32Const, 0, opI32Const, 2, prefixMisc, miscTableInit, 5, 0)
	default:
		g.op(opDrop, prefixMisc, 0x0D, 5) // elem.drop
	}
}

// call calls a function of its own and keeps what it returns.
func (g *generator) call(depth int) {
	to := g.IntN(len(g.own))
	g.value32(depth - 1)
	g.op(opCall, byte(genImports+to))
	switch g.own[to] {
	case 0:
		g.op(0x21, g.local32())
	case 1:
		g.op(0x21, g.local64())
	case 2:
		g.op(0x21, g.local64(), 0x21, g.local32())
	}
}
