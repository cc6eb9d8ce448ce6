package meter

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Layout is what host and guest can see of each other. Whether the rest of the module is well formed is the
// compiler's to say.
type Layout struct {
	Imports   []Import
	Memories  []Memory // the imported ones first
	Exports   []Export
	Languages []string // from the producers section

	types     []string // signatures, as written by Signature
	functions []uint32 // type of each function, the imported ones first
}

// Import is something a module wants of its host.
type Import struct {
	Module, Name string
	Kind         byte
	Signature    string // of a function
}

// Export is something a module offers its host.
type Export struct {
	Name  string
	Kind  byte
	Index uint32
}

// Memory is the limits of a memory or a table, in pages or elements.
type Memory struct {
	Flags    byte   // 0 and 1 are plain; other bits mean shared, 64-bit
	Min, Max uint64 // Max is 2^32-1 when none is given
}

// Kinds of imports and exports.
const (
	KindFunction = 0
	KindTable    = 1
	KindMemory   = 2
	KindGlobal   = 3
	kindTag      = 4
)

// KindName is the word for a kind.
func KindName(kind byte) string {
	return [...]string{"function", "table", "memory", "global", "tag"}[min(kind, kindTag)]
}

// Sections of a module.
const (
	sectionCustom    = 0
	sectionType      = 1
	sectionImport    = 2
	sectionFunction  = 3
	sectionTable     = 4
	sectionMemory    = 5
	sectionGlobal    = 6
	sectionExport    = 7
	sectionStart     = 8
	sectionElement   = 9
	sectionCode      = 10
	sectionData      = 11
	sectionDataCount = 12
)

const moduleHeader = "\x00asm\x01\x00\x00\x00"

// ReadLayout reads the sections of a module. What it allocates is in proportion to len(wasm).
func ReadLayout(wasm []byte) (*Layout, error) {
	l := &Layout{}
	return l, eachSection(wasm, l.section)
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

func (l *Layout) section(id byte, r *reader) {
	switch id {
	case sectionCustom:
		if string(r.name()) == "producers" {
			l.producers(r)
		}
		r.bad = "" // a custom section is a hint; a broken one makes no module invalid
	case sectionType:
		r.vector(func() { l.types = append(l.types, r.functionType()) })
	case sectionImport:
		r.vector(func() { l.addImport(r) })
	case sectionFunction:
		r.vector(func() { l.functions = append(l.functions, r.u32()) })
	case sectionMemory:
		r.vector(func() { l.Memories = append(l.Memories, r.limits()) })
	case sectionExport:
		r.vector(func() { l.Exports = append(l.Exports, Export{string(r.name()), r.byte(), r.u32()}) })
	}
}

func (l *Layout) addImport(r *reader) {
	in := Import{Module: string(r.name()), Name: string(r.name()), Kind: r.byte()}
	switch in.Kind {
	case KindFunction:
		index := r.u32()
		in.Signature = l.typeAt(index)
		l.functions = append(l.functions, index)
	case KindMemory:
		l.Memories = append(l.Memories, r.limits())
	default:
		r.importType(in.Kind)
	}
	l.Imports = append(l.Imports, in)
}

// importType takes what stands behind the kind of an import.
func (r *reader) importType(kind byte) {
	switch kind {
	case KindFunction:
		r.u32()
	case KindTable:
		r.byte()
		r.limits()
	case KindMemory:
		r.limits()
	case KindGlobal:
		r.take(2)
	case kindTag:
		r.byte()
		r.u32()
	default:
		r.fail("unknown kind of import")
	}
}

// producers reads the custom section of the tool conventions: fields, each with names and versions.
func (l *Layout) producers(r *reader) {
	r.vector(func() {
		field := string(r.name())
		r.vector(func() {
			name := string(r.name())
			r.name()
			if field == "language" && !slices.Contains(l.Languages, name) {
				l.Languages = append(l.Languages, name)
			}
		})
	})
}

func (l *Layout) typeAt(index uint32) string {
	if uint64(index) >= uint64(len(l.types)) {
		return "unknown type"
	}
	return l.types[index]
}

// Export returns the export of that name; signature is set for functions.
func (l *Layout) Export(name string) (e Export, signature string, ok bool) {
	at := slices.IndexFunc(l.Exports, func(e Export) bool { return e.Name == name })
	if at < 0 {
		return Export{}, "", false
	}
	e = l.Exports[at]
	if e.Kind == KindFunction && uint64(e.Index) < uint64(len(l.functions)) {
		signature = l.typeAt(l.functions[e.Index])
	}
	return e, signature, true
}
