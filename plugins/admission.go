package plugins

import (
	"fmt"

	"github.com/headgate-io/headgate/plugins/meter"
	"github.com/headgate-io/headgate/sdk/abi"
)

const pageSize = 64 << 10

// inspect makes the checks that need no compiler, and returns what is to be compiled. The layout is nil when the
// module is not to be read at all.
func (h *Host) inspect(wasm []byte, r *Report) (l *meter.Layout, metered []byte) {
	if len(wasm) > h.cfg.MaxModule {
		r.note("size", codeSize, fmt.Sprintf("the module has %d bytes, more than the limit of %d", len(wasm), h.cfg.MaxModule))
		return nil, nil
	}
	r.note("size", codeSize)
	c, err := meter.TakeCensus(wasm)
	if err != nil {
		r.note("format", codeMalformed, err.Error())
		return nil, nil
	}
	if !r.note("limits", codeLimit, c.Faults()...) {
		return nil, nil
	}
	if l, err = meter.ReadLayout(wasm); err == nil {
		metered, err = h.meter(wasm)
	}
	if err != nil {
		r.note("format", codeMalformed, err.Error())
		return nil, nil
	}
	r.note("format", codeMalformed)
	r.Languages = append(r.Languages, l.Languages...)
	r.note("imports", codeImport, importFaults(l)...)
	r.note("exports", codeExport, exportFaults(l)...)
	h.checkMemory(l, r)
	return l, metered
}

func (h *Host) meter(wasm []byte) ([]byte, error) {
	if h.unmetered {
		return wasm, nil
	}
	return meter.Rewrite(wasm)
}

func importFaults(l *meter.Layout) (faults []string) {
	for _, in := range l.Imports {
		f, known := hostFunctions(in.Module)[in.Name]
		switch {
		case in.Kind != meter.KindFunction:
			faults = append(faults, fmt.Sprintf("imports the %s %s.%s: only functions can be imported", meter.KindName(in.Kind), in.Module, in.Name))
		case !known:
			faults = append(faults, fmt.Sprintf("imports %s.%s: only %s.%s, %s.%s and the functions of %s can be imported",
				in.Module, in.Name, abi.ImportModule, abi.ImportLog, abi.ImportModule, abi.ImportCounter, abi.WASIModule))
		case in.Signature != f.signature():
			faults = append(faults, fmt.Sprintf("imports %s.%s as %s: it is %s", in.Module, in.Name, in.Signature, f.signature()))
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

func exportFaults(l *meter.Layout) (faults []string) {
	for _, want := range exports {
		e, got, found := l.Export(want.name)
		switch {
		case !found && want.required:
			faults = append(faults, fmt.Sprintf("does not export the function %s %s", want.name, want.signature))
		case found && (e.Kind != meter.KindFunction || got != want.signature):
			faults = append(faults, fmt.Sprintf("exports %s as %s %s: it must be a function %s", want.name, meter.KindName(e.Kind), got, want.signature))
		}
	}
	if e, _, found := l.Export(abi.ExportMemory); !found || e.Kind != meter.KindMemory {
		faults = append(faults, "does not export its memory as "+abi.ExportMemory)
	}
	if _, _, found := l.Export(abi.ExportStart); found {
		faults = append(faults, "exports "+abi.ExportStart+": a plugin is a library, not a command; build it as a reactor (Go: -buildmode=c-shared)")
	}
	return faults
}

func (h *Host) checkMemory(l *meter.Layout, r *Report) {
	limit := uint64(h.cfg.MaxMemory / pageSize)
	switch {
	case len(l.Memories) != 1:
		r.note("memory", codeLimit, fmt.Sprintf("has %d memories: it must have exactly one", len(l.Memories)))
	case l.Memories[0].Flags > 1:
		r.note("memory", codeLimit, "its memory is shared or 64-bit: it must be a plain 32-bit memory")
	case l.Memories[0].Min > limit:
		r.note("memory", codeLimit, fmt.Sprintf("starts with %d pages of memory (%d KiB), more than the limit of %d (%d KiB): let it start with less, or raise plugins.memory",
			l.Memories[0].Min, l.Memories[0].Min*pageSize>>10, limit, limit*pageSize>>10))
	default:
		r.note("memory", codeLimit)
	}
}
