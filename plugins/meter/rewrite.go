package meter

import (
	"errors"
	"fmt"
	"slices"
)

// Rewrite returns a module that does what wasm does, and pays for it:
//
//   - A global holds the fuel that is left. Functions take their cost off on entry, loops at the start of each
//     round, for as many instructions as follow until the next such place, at most. Below zero they call the import
//     YieldModule.YieldName, which gives more, or panics and so ends the call.
//   - What takes time by its size, like memory.fill, takes it off by size.
//   - A second global counts how deep calls are nested; more than Depth calls the import with Deep.
//   - Tables grow up to TableCap elements.
//
// Custom sections are left out. The error names what is wrong with wasm; a module that is invalid in other ways stays
// invalid, and what is returned must be validated. Nothing in wasm can name what is added. wasm must be within the
// limits of a Census.
func Rewrite(wasm []byte) ([]byte, error) {
	m := &module{typeAt: map[functionType]uint32{}}
	err := eachSection(wasm, m.section)
	if err == nil {
		err = m.check()
	}
	if err != nil {
		return nil, err
	}
	settle(m.functions)
	return m.write(len(wasm) + len(wasm)/2)
}

// module is a module that is being rewritten.
type module struct {
	sections [sectionDataCount + 1][]byte // nil where there is none
	last     int                          // place of the last section, in the order that they must have

	types     []functionType
	imported  []uint32   // types of imported functions
	functions []function // own ones
	globals   uint32
	bodies    int
	loops     []bool // of survey

	moreTypes []functionType // that Rewrite adds, behind types
	typeAt    map[functionType]uint32
}

type functionType struct{ params, results string } // encoded: a count, then a byte each

// order is the place of each section; read only.
var order = [...]int{
	sectionType: 1, sectionImport: 2, sectionFunction: 3, sectionTable: 4, sectionMemory: 5, sectionGlobal: 6,
	sectionExport: 7, sectionStart: 8, sectionElement: 9, sectionDataCount: 10, sectionCode: 11, sectionData: 12,
}

func (m *module) section(id byte, r *reader) {
	if id == sectionCustom {
		return
	}
	if int(id) >= len(order) || order[id] <= m.last {
		r.fail("it is unknown, there twice, or not in its place")
		return
	}
	m.last, m.sections[id] = order[id], r.rest[:len(r.rest):len(r.rest)]
	switch id {
	case sectionType:
		r.vector(func() { m.types = append(m.types, r.encodedType()) })
	case sectionImport:
		r.vector(func() { m.addImport(r) })
	case sectionFunction:
		r.vector(func() { m.functions = append(m.functions, function{typ: r.u32()}) })
	case sectionTable:
		m.sections[id] = m.tables(r)
	case sectionGlobal:
		m.globals += (&reader{rest: r.rest}).u32()
		m.sections[id] = m.globalTypes(r)
	case sectionExport:
		m.sections[id] = m.exports(r)
	case sectionStart:
		m.sections[id] = m.start(r)
	case sectionElement:
		m.sections[id] = m.elements(r)
	case sectionDataCount:
		r.u32()
	case sectionCode:
		r.vector(func() { m.addBody(r) })
	case sectionData:
		r.vector(func() { m.data(r) })
	default: // the memory
		return
	}
	if r.bad == "" && len(r.rest) > 0 {
		r.fail("goes on behind its end")
	}
}

// encodedType reads a type of functions as it stands.
func (r *reader) encodedType() (t functionType) {
	r.byte()
	for _, part := range []*string{&t.params, &t.results} {
		from := r.rest
		r.vector(r.valueType)
		*part = string(from[:len(from)-len(r.rest)])
	}
	return t
}

func (m *module) addImport(r *reader) {
	r.name()
	r.name()
	switch kind := r.byte(); kind {
	case KindFunction:
		m.imported = append(m.imported, r.u32())
	case KindGlobal:
		m.globals++
		fallthrough
	default:
		r.importType(kind)
	}
}

// addBody takes the body of the next function.
func (m *module) addBody(r *reader) {
	body := r.take(uint64(r.u32()))
	if m.bodies == len(m.functions) {
		r.fail("more bodies than functions")
		return
	}
	f := &m.functions[m.bodies]
	f.code = body
	m.bodies++
	in := &reader{rest: body}
	if m.survey(f, in); in.bad != "" {
		r.fail(fmt.Sprintf("function %d: %s", m.bodies-1, in.bad))
	}
}

// check looks at what only the whole module tells. Indices out of range must be found here: they could else mean
// something that is added.
func (m *module) check() error {
	if m.bodies != len(m.functions) {
		return fmt.Errorf("%d functions, and %d bodies", len(m.functions), m.bodies)
	}
	for _, typ := range m.imported {
		if int64(typ) >= int64(len(m.types)) {
			return errors.New("an import of an unknown type")
		}
	}
	for i := range m.functions {
		f := &m.functions[i]
		if int64(f.typ) >= int64(len(m.types)) {
			return fmt.Errorf("function %d is of an unknown type", i)
		}
		if slices.ContainsFunc(f.calls, func(to uint32) bool { return int64(to) >= int64(len(m.functions)) }) {
			return fmt.Errorf("function %d calls an unknown function", i)
		}
	}
	return nil
}

// shift is the index that a function has once the import is added.
func (m *module) shift(index uint32) uint32 {
	if int64(index) >= int64(len(m.imported)) {
		index++
	}
	return index
}

// known fails the reader when there is no such function.
func (m *module) known(r *reader, index uint32) {
	if int64(index) >= int64(len(m.imported)+len(m.functions)) {
		r.fail("an unknown function is named")
	}
}

// Indices of what is added.
func (m *module) yield() uint32        { return uint32(len(m.imported)) }
func (m *module) helper(n int) uint32  { return uint32(len(m.imported) + 1 + len(m.functions) + n) }
func (m *module) fuel() uint32         { return m.globals }
func (m *module) depth() uint32        { return m.globals + 1 }
func (m *module) own(index uint32) int { return int(index) - len(m.imported) }

// typeOf returns the index of a type that is added.
func (m *module) typeOf(t functionType) uint32 {
	at, ok := m.typeAt[t]
	if !ok {
		at = uint32(len(m.types) + len(m.moreTypes))
		m.moreTypes, m.typeAt[t] = append(m.moreTypes, t), at
	}
	return at
}
