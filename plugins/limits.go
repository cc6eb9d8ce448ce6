package plugins

import "fmt"

// Limits of what a module may declare, besides its size and its memory. A compiler takes time and memory by these
// figures rather than by the size of the file: four billion locals fit into a file of 128 bytes.
const (
	mostTypes     = 10_000
	mostValues    = 1_000 // parameters, and also results, of a type
	mostPortals   = 1_000 // imports and exports together
	mostFunctions = 20_000
	mostTables    = 1
	mostTableSize = 100_000 // elements
	mostGlobals   = 10_000
	mostElements  = 10_000 // segments
	mostData      = 8 << 20
	mostBody      = 128 << 10 // bytes of a function
	mostLocals    = 2_000     // of a function
	mostLocalsAll = 1_000_000 // of all functions
)

// census is what a module declares, counted and not kept. Sections that are there twice count twice.
type census struct {
	types, portals, functions, tables, globals, elements, data, locals uint64

	params, results, bodySize, bodyLocals peak

	tableMin, tableMax uint64
	bodies             int
	code               instructions
}

// peak is the largest figure seen, and the index of what had it.
type peak struct {
	n  uint64
	at int
}

func (p *peak) see(n uint64, at int) {
	if n > p.n {
		*p = peak{n, at}
	}
}

// count adds a section.
func (c *census) count(id byte, r *reader) {
	switch id {
	case sectionType:
		r.vector(func() { c.countType(r) })
	case sectionImport, sectionExport:
		c.portals += uint64(r.u32())
	case sectionFunction:
		c.functions += uint64(r.u32())
	case sectionTable:
		r.vector(func() { c.countTable(r) })
	case sectionGlobal:
		c.globals += uint64(r.u32())
	case sectionElement:
		c.elements += uint64(r.u32())
	case sectionCode:
		r.vector(func() { c.countBody(r) })
	case sectionData:
		c.data += uint64(len(r.rest))
	}
}

func (c *census) countType(r *reader) {
	r.byte()
	for _, p := range []*peak{&c.params, &c.results} {
		n := uint64(0)
		r.vector(func() { r.valueType(); n++ })
		p.see(n, int(c.types))
	}
	c.types++
}

func (c *census) countTable(r *reader) {
	r.valueType()
	t := r.limits()
	c.tables++
	c.tableMin, c.tableMax = max(c.tableMin, t.min), max(c.tableMax, t.max)
}

// countBody reads the declarations of locals at the start of a function's body, and its instructions.
func (c *census) countBody(r *reader) {
	body := &reader{rest: r.take(uint64(r.u32()))}
	c.bodySize.see(uint64(len(body.rest)), c.bodies)
	locals := uint64(0)
	body.vector(func() {
		locals += uint64(body.u32())
		body.valueType()
	})
	c.bodyLocals.see(locals, c.bodies)
	c.locals += locals
	c.code.count(body, c.bodies)
	c.bodies++
	if body.bad != "" {
		r.fail(fmt.Sprintf("function %d: %s", c.bodies-1, body.bad))
	}
}

// faults names each figure that is over its limit.
func (c *census) faults() (faults []string) {
	check := func(n, limit uint64, what string, args ...any) {
		if n > limit {
			faults = append(faults, fmt.Sprintf("%s %d, more than the limit of %d", fmt.Sprintf(what, args...), n, limit))
		}
	}
	check(c.types, mostTypes, "types:")
	check(c.params.n, mostValues, "parameters of type %d:", c.params.at)
	check(c.results.n, mostValues, "results of type %d:", c.results.at)
	check(c.portals, mostPortals, "imports and exports:")
	check(c.functions, mostFunctions, "functions:")
	check(c.tables, mostTables, "tables:")
	check(c.tableMin, mostTableSize, "elements a table starts with:")
	check(c.globals, mostGlobals, "globals:")
	check(c.elements, mostElements, "element segments:")
	check(c.data, mostData, "bytes of data:")
	check(c.bodySize.n, mostBody, "bytes of function body %d:", c.bodySize.at)
	check(c.bodyLocals.n, mostLocals, "locals of function body %d:", c.bodyLocals.at)
	check(c.locals, mostLocalsAll, "locals of all functions:")
	check(c.code.nesting.n, mostNesting, "nested blocks of function body %d:", c.code.nesting.at)
	check(c.code.branches.n, mostTargets, "targets of a br_table in function body %d:", c.code.branches.at)
	check(c.code.targets, mostTargetsAll, "targets of all br_tables:")
	if c.code.growsTable {
		check(c.tableMax, mostTableSize, "elements that table.grow may reach:")
	}
	return faults
}
