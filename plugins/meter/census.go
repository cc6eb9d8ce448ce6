package meter

import "fmt"

// Limits of what a module may declare, besides its size and its memory. A compiler takes time and memory by these
// figures rather than by the size of the file: four billion locals fit into a file of 128 bytes.
const (
	mostTypes     = 10_000
	mostValues    = 1_000 // parameters, and also results, of a type
	mostPortals   = 1_000 // imports and exports together
	mostFunctions = 20_000
	mostTables    = 1
	mostTableSize = TableCap
	mostGlobals   = 10_000
	mostElements  = 10_000 // segments
	mostData      = 8 << 20
	mostSegments  = 100_000   // of data
	mostBody      = 128 << 10 // bytes of a function
	mostLocals    = 2_000     // of a function
	mostLocalsAll = 1_000_000 // of all functions

	mostNesting    = 1_000     // blocks within one another
	mostTargets    = 4_096     // of a br_table
	mostTargetsAll = 1_000_000 // of all br_tables
)

// Census is what a module declares, counted and not kept. Sections that are there twice count twice.
type Census struct {
	types, portals, functions, tables, globals, elements, data, segments, locals uint64

	params, results, bodySize, bodyLocals, nesting, branches peak

	tableMin, targets uint64
	bodies            int
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

// TakeCensus reads the sections of a module. What it allocates does not depend on them.
func TakeCensus(wasm []byte) (*Census, error) {
	c := &Census{}
	return c, eachSection(wasm, c.count)
}

// count adds a section.
func (c *Census) count(id byte, r *reader) {
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
		c.segments += uint64(r.u32())
	}
}

func (c *Census) countType(r *reader) {
	r.byte()
	for _, p := range []*peak{&c.params, &c.results} {
		n := uint64(0)
		r.vector(func() { r.valueType(); n++ })
		p.see(n, int(c.types))
	}
	c.types++
}

func (c *Census) countTable(r *reader) {
	r.valueType()
	t := r.limits()
	c.tables++
	c.tableMin = max(c.tableMin, t.Min)
}

// countBody reads the declarations of locals at the start of a function's body, and its instructions.
func (c *Census) countBody(r *reader) {
	body := &reader{rest: r.take(uint64(r.u32()))}
	c.bodySize.see(uint64(len(body.rest)), c.bodies)
	locals := uint64(0)
	body.vector(func() {
		locals += uint64(body.u32())
		body.valueType()
	})
	c.bodyLocals.see(locals, c.bodies)
	c.locals += locals
	c.countInstructions(body)
	c.bodies++
	if body.bad != "" {
		r.fail(fmt.Sprintf("function %d: %s", c.bodies-1, body.bad))
	}
}

// countInstructions follows the instructions of one function, up to the end that closes it.
func (c *Census) countInstructions(r *reader) {
	for depth := uint64(1); depth > 0 && r.bad == ""; {
		switch in := r.next(); in.op {
		case opBlock, opLoop, opIf:
			c.nesting.see(depth, c.bodies)
			depth++
		case opEnd:
			depth--
		case opBranchTable:
			c.branches.see(uint64(in.index), c.bodies)
			c.targets += uint64(in.index)
		}
	}
	if r.bad == "" && len(r.rest) > 0 {
		r.fail("goes on behind its end")
	}
}

// Faults names each figure that is over its limit.
func (c *Census) Faults() (faults []string) {
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
	check(c.segments, mostSegments, "data segments:")
	check(c.bodySize.n, mostBody, "bytes of function body %d:", c.bodySize.at)
	check(c.bodyLocals.n, mostLocals, "locals of function body %d:", c.bodyLocals.at)
	check(c.locals, mostLocalsAll, "locals of all functions:")
	check(c.nesting.n, mostNesting, "nested blocks of function body %d:", c.nesting.at)
	check(c.branches.n, mostTargets, "targets of a br_table in function body %d:", c.branches.at)
	check(c.targets, mostTargetsAll, "targets of all br_tables:")
	return faults
}
