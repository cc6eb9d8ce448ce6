package plugins

import (
	"encoding/binary"
	"slices"
)

// Kinds and sections, as package meter knows them.
const (
	kindFunction, kindTable, kindMemory, kindGlobal = 0, 1, 2, 3

	sectionCustom, sectionType, sectionImport, sectionFunction, sectionTable, sectionMemory, sectionGlobal = 0, 1, 2, 3, 4, 5, 6
	sectionExport, sectionStart, sectionElement, sectionCode, sectionData, sectionDataCount                = 7, 8, 9, 10, 11, 12

	moduleHeader = "\x00asm\x01\x00\x00\x00"
)

// wasmModule is a module in the making: just what tests need of the binary format.
type wasmModule struct {
	imports   []wasmImport
	functions []wasmFunction
	memories  []string // limits, encoded
	exports   []wasmExport
	start     string // index of a function, encoded; empty for none
	custom    string // the producers' languages, empty for none
}

type wasmImport struct {
	module, name string
	kind         byte
	signature    string // of a function: letters of parameters, then ':', then of results; i is i32, I is i64
}

type wasmFunction struct {
	signature string
	locals    int // more i32 besides the parameters
	code      string
}

type wasmExport struct {
	name  string
	kind  byte
	index int
}

func (m wasmModule) bytes() []byte {
	var types, functions, code, imports, exports, memories []string
	typeOf := func(signature string) string {
		t := functionTypeCode(signature)
		if !slices.Contains(types, t) {
			types = append(types, t)
		}
		return leb(slices.Index(types, t))
	}
	for _, in := range m.imports {
		what := map[byte]string{kindTable: "\x70\x00\x01", kindMemory: "\x00\x01", kindGlobal: "\x7f\x00"}[in.kind]
		if in.kind == kindFunction {
			what = typeOf(in.signature)
		}
		imports = append(imports, text(in.module)+text(in.name)+string(in.kind)+what)
	}
	for _, f := range m.functions {
		functions = append(functions, typeOf(f.signature))
		body := leb(1) + leb(f.locals) + "\x7f" + f.code + end
		code = append(code, leb(len(body))+body)
	}
	memories = append(memories, m.memories...)
	for _, e := range m.exports {
		exports = append(exports, text(e.name)+string(e.kind)+leb(e.index))
	}
	out := moduleHeader
	for _, s := range []struct {
		id    int
		items []string
	}{{sectionType, types}, {sectionImport, imports}, {sectionFunction, functions}, {sectionMemory, memories}, {sectionExport, exports}, {sectionStart, nil}, {10, code}} {
		if s.id == sectionStart && m.start != "" {
			out += section(s.id, m.start)
		}
		if len(s.items) > 0 {
			out += section(s.id, vector(s.items))
		}
	}
	if m.custom != "" {
		out += section(sectionCustom, text("producers")+vector([]string{text("language") + vector([]string{text(m.custom) + text("1")})}))
	}
	return []byte(out)
}

func functionTypeCode(signature string) string {
	params, results, _ := cut(signature)
	return "\x60" + valueTypesCode(params) + valueTypesCode(results)
}

func cut(signature string) (params, results string, ok bool) {
	for i := range signature {
		if signature[i] == ':' {
			return signature[:i], signature[i+1:], true
		}
	}
	return signature, "", false
}

func valueTypesCode(letters string) string {
	out := leb(len(letters))
	for _, c := range letters {
		out += map[rune]string{'i': "\x7f", 'I': "\x7e"}[c]
	}
	return out
}

func section(id int, body string) string { return string(rune(id)) + leb(len(body)) + body }

func text(s string) string { return leb(len(s)) + s }

func vector(items []string) string {
	out := leb(len(items))
	for _, item := range items {
		out += item
	}
	return out
}

func leb(v int) string { return string(binary.AppendUvarint(nil, uint64(v))) }

// sleb is signed LEB128.
func sleb(v int32) string {
	var out []byte
	for {
		b := byte(v & 0x7F)
		v >>= 7
		if v == 0 && b&0x40 == 0 || v == -1 && b&0x40 != 0 {
			return string(append(out, b))
		}
		out = append(out, b|0x80)
	}
}

// Instructions.
const (
	unreachable = "\x00"
	loop        = "\x03\x40" // no result
	block       = "\x02\x40"
	if_         = "\x04\x40"
	end         = "\x0b"
	ret         = "\x0f"
	drop        = "\x1a"
	add         = "\x6a"
	mul         = "\x6c"
	and         = "\x71"
	eq          = "\x46"
	geU         = "\x4f"
	memorySize  = "\x3f\x00"
	memoryGrow  = "\x40\x00"
)

func get(local int) string      { return "\x20" + leb(local) }
func set(local int) string      { return "\x21" + leb(local) }
func i32(v int32) string        { return "\x41" + sleb(v) }
func load(at int) string        { return "\x28\x02" + leb(at) }
func load8(at int) string       { return "\x2d\x00" + leb(at) }
func store(at int) string       { return "\x36\x02" + leb(at) }
func store8(at int) string      { return "\x3a\x00" + leb(at) }
func store16(at int) string     { return "\x3b\x01" + leb(at) }
func call(function int) string  { return "\x10" + leb(function) }
func branch(depth int) string   { return "\x0c" + leb(depth) }
func branchIf(depth int) string { return "\x0d" + leb(depth) }
