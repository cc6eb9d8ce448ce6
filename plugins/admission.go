package plugins

import (
	"fmt"

	"github.com/headgate-io/headgate/sdk/abi"
)

const pageSize = 64 << 10

// inspect makes the checks that need no compiler. The layout is nil when the module is not to be read at all.
func (h *Host) inspect(wasm []byte, r *Report) *layout {
	if len(wasm) > h.cfg.MaxModule {
		r.note("size", codeSize, fmt.Sprintf("the module has %d bytes, more than the limit of %d", len(wasm), h.cfg.MaxModule))
		return nil
	}
	r.note("size", codeSize)
	c, err := takeCensus(wasm)
	if err != nil {
		r.note("format", codeMalformed, err.Error())
		return nil
	}
	if !r.note("limits", codeLimit, c.faults()...) {
		return nil
	}
	l, err := readLayout(wasm)
	if err != nil {
		r.note("format", codeMalformed, err.Error())
		return nil
	}
	r.note("format", codeMalformed)
	r.Languages = append(r.Languages, l.languages...)
	r.note("imports", codeImport, importFaults(l)...)
	r.note("exports", codeExport, exportFaults(l)...)
	h.checkMemory(l, r)
	return l
}

func importFaults(l *layout) (faults []string) {
	for _, in := range l.imports {
		f, known := hostFunctions(in.module)[in.name]
		switch {
		case in.kind != kindFunction:
			faults = append(faults, fmt.Sprintf("imports the %s %s.%s: only functions can be imported", kindName(in.kind), in.module, in.name))
		case !known:
			faults = append(faults, fmt.Sprintf("imports %s.%s: only %s.%s, %s.%s and the functions of %s can be imported",
				in.module, in.name, abi.ImportModule, abi.ImportLog, abi.ImportModule, abi.ImportCounter, abi.WASIModule))
		case in.signature != f.signature():
			faults = append(faults, fmt.Sprintf("imports %s.%s as %s: it is %s", in.module, in.name, in.signature, f.signature()))
		}
	}
	return faults
}

// exports lists the functions a guest may or must have; read only.
var exports = []struct {
	name, signature string
	required        bool
}{
	{abi.ExportVersion, "() -> i32", true},
	{abi.ExportAlloc, "(i32, i32) -> i32", true},
	{abi.ExportProcess, "(i32) -> i32", true},
	{abi.ExportInitialize, "() -> ", false},
	{abi.ExportInit, "(i32, i32) -> i32", false},
	{abi.ExportFree, "(i32, i32) -> ", false},
}

func exportFaults(l *layout) (faults []string) {
	for _, want := range exports {
		e, got, found := l.export(want.name)
		switch {
		case !found && want.required:
			faults = append(faults, fmt.Sprintf("does not export the function %s %s", want.name, want.signature))
		case found && (e.kind != kindFunction || got != want.signature):
			faults = append(faults, fmt.Sprintf("exports %s as %s %s: it must be a function %s", want.name, kindName(e.kind), got, want.signature))
		}
	}
	if e, _, found := l.export(abi.ExportMemory); !found || e.kind != kindMemory {
		faults = append(faults, "does not export its memory as "+abi.ExportMemory)
	}
	if _, _, found := l.export(abi.ExportStart); found {
		faults = append(faults, "exports "+abi.ExportStart+": a plugin is a library, not a command; build it as a reactor (Go: -buildmode=c-shared)")
	}
	return faults
}

func (h *Host) checkMemory(l *layout, r *Report) {
	limit := uint64(h.cfg.MaxMemory / pageSize)
	switch {
	case len(l.memories) != 1:
		r.note("memory", codeLimit, fmt.Sprintf("has %d memories: it must have exactly one", len(l.memories)))
	case l.memories[0].flags > 1:
		r.note("memory", codeLimit, "its memory is shared or 64-bit: it must be a plain 32-bit memory")
	case l.memories[0].min > limit:
		r.note("memory", codeLimit, fmt.Sprintf("starts with %d pages of memory, more than the limit of %d", l.memories[0].min, limit))
	default:
		r.note("memory", codeLimit)
	}
}
