package plugins

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// layout is what admission needs to know of a module: what host and guest can see of each other. It is read
// before anything is compiled; whether the rest of the module is well formed is the compiler's to say.
type layout struct {
	types     []string // signatures, as written by signature
	functions []uint32 // type of each function, the imported ones first
	imports   []imported
	memories  []memoryType // the imported ones first
	exports   []exported
	languages []string // from the producers section
}

type imported struct {
	module, name string
	kind         byte
	signature    string // of a function
}

type exported struct {
	name  string
	kind  byte
	index uint32
}

type memoryType struct {
	flags byte   // 0 and 1 are plain; other bits mean shared, 64-bit
	min   uint64 // pages
	max   uint64 // pages; 2^32-1 when none is given
}

// Kinds of imports and exports.
const (
	kindFunction = 0
	kindTable    = 1
	kindMemory   = 2
	kindGlobal   = 3
	kindTag      = 4
)

func kindName(kind byte) string {
	return [...]string{"function", "table", "memory", "global", "tag"}[min(kind, kindTag)]
}

// Sections of a module that layout and census are read from.
const (
	sectionCustom   = 0
	sectionType     = 1
	sectionImport   = 2
	sectionFunction = 3
	sectionTable    = 4
	sectionMemory   = 5
	sectionGlobal   = 6
	sectionExport   = 7
	sectionElement  = 9
	sectionCode     = 10
	sectionData     = 11
)

const moduleHeader = "\x00asm\x01\x00\x00\x00"

// readLayout reads the sections of a module. What it allocates is in proportion to len(wasm).
func readLayout(wasm []byte) (*layout, error) {
	l := &layout{}
	return l, eachSection(wasm, l.section)
}

// takeCensus reads the sections of a module. What it allocates does not depend on them.
func takeCensus(wasm []byte) (*census, error) {
	c := &census{}
	return c, eachSection(wasm, c.count)
}

// eachSection hands the sections of a module over, one by one.
func eachSection(wasm []byte, section func(id byte, body *reader)) error {
	if !strings.HasPrefix(string(wasm[:min(len(wasm), 8)]), moduleHeader) {
		return errors.New("not a WebAssembly module of version 1: its first 8 bytes are others")
	}
	for r := (&reader{rest: wasm[8:]}); len(r.rest) > 0; {
		id := r.byte()
		body := &reader{rest: r.take(uint64(r.u32()))}
		if r.bad != "" {
			return errors.New("section header: " + r.bad)
		}
		section(id, body)
		if body.bad != "" {
			return fmt.Errorf("section %d: %s", id, body.bad)
		}
	}
	return nil
}

func (l *layout) section(id byte, r *reader) {
	switch id {
	case sectionCustom:
		if string(r.name()) == "producers" {
			l.producers(r)
		}
	case sectionType:
		r.vector(func() { l.types = append(l.types, r.functionType()) })
	case sectionImport:
		r.vector(func() { l.addImport(r) })
	case sectionFunction:
		r.vector(func() { l.functions = append(l.functions, r.u32()) })
	case sectionMemory:
		r.vector(func() { l.memories = append(l.memories, r.limits()) })
	case sectionExport:
		r.vector(func() { l.exports = append(l.exports, exported{string(r.name()), r.byte(), r.u32()}) })
	}
}

func (l *layout) addImport(r *reader) {
	in := imported{module: string(r.name()), name: string(r.name()), kind: r.byte()}
	switch in.kind {
	case kindFunction:
		index := r.u32()
		in.signature = l.typeAt(index)
		l.functions = append(l.functions, index)
	case kindTable:
		r.byte()
		r.limits()
	case kindMemory:
		l.memories = append(l.memories, r.limits())
	case kindGlobal:
		r.take(2)
	case kindTag:
		r.byte()
		r.u32()
	default:
		r.fail("unknown kind of import")
	}
	l.imports = append(l.imports, in)
}

// producers reads the custom section of the tool conventions: fields, each with names and versions.
func (l *layout) producers(r *reader) {
	r.vector(func() {
		field := string(r.name())
		r.vector(func() {
			name := string(r.name())
			r.name()
			if field == "language" && !slices.Contains(l.languages, name) {
				l.languages = append(l.languages, name)
			}
		})
	})
	r.bad = "" // a custom section is a hint; a broken one makes no module invalid
}

func (l *layout) typeAt(index uint32) string {
	if uint64(index) >= uint64(len(l.types)) {
		return "unknown type"
	}
	return l.types[index]
}

// export returns the export of that name; signature is set for functions.
func (l *layout) export(name string) (e exported, signature string, ok bool) {
	at := slices.IndexFunc(l.exports, func(e exported) bool { return e.name == name })
	if at < 0 {
		return exported{}, "", false
	}
	e = l.exports[at]
	if e.kind == kindFunction && uint64(e.index) < uint64(len(l.functions)) {
		signature = l.typeAt(l.functions[e.index])
	}
	return e, signature, true
}
