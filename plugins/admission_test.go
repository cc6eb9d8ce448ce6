package plugins

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/plugins/meter"
	"github.com/headgate-io/headgate/sdk/abi"
)

func admit(t testing.TB, wasm []byte) *Report {
	t.Helper()
	r, err := hostOf(t, Config{MaxMemory: 4 << 20, MaxModule: 8 << 10}).Admit(context.Background(), wasm)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// without returns m without an export.
func without(m wasmModule, name string) wasmModule {
	m.exports = slices.DeleteFunc(slices.Clone(m.exports), func(e wasmExport) bool { return e.name == name })
	return m
}

// importing returns m with one more import, behind the others; it is not a function, or m has no functions of its own to shift.
func importing(m wasmModule, in wasmImport) wasmModule {
	m.imports = append(slices.Clone(m.imports), in)
	if in.kind == kindFunction {
		m.functions, m.exports = nil, nil
	}
	return m
}

func exporting(m wasmModule, e wasmExport) wasmModule {
	m.exports = append(slices.Clone(m.exports), e)
	return m
}

func withFunction(m wasmModule, index int, f wasmFunction) wasmModule {
	m.functions = slices.Clone(m.functions)
	m.functions[index-fnVersion] = f
	return m
}

func withMemory(m wasmModule, limits ...string) wasmModule {
	m.memories = limits
	return m
}

// Cases L01 and L16: what is refused, under which code, and what the detail names.
func TestL01L16Refused(t *testing.T) {
	ok := base()
	tests := []struct {
		name   string
		wasm   []byte
		code   string
		detail string
	}{
		{"too large", make([]byte, 8<<10+1), codeSize, "8193 bytes"},
		{"empty", nil, codeMalformed, "first 8 bytes"},
		{"text", []byte("(module)"), codeMalformed, "first 8 bytes"},
		{"a component", []byte("\x00asm\x0d\x00\x01\x00"), codeMalformed, "version 1"},
		{"cut short", ok.bytes()[:40], codeMalformed, "ends too early"},
		{"invalid code", withFunction(ok, fnProcess, wasmFunction{"i:i", 0, add}).bytes(), codeMalformed, ""},
		{"no hg_abi_v1", without(ok, abi.ExportVersion).bytes(), codeExport, "hg_abi_v1"},
		{"no hg_alloc", without(ok, abi.ExportAlloc).bytes(), codeExport, "hg_alloc"},
		{"no hg_process", without(ok, abi.ExportProcess).bytes(), codeExport, "hg_process"},
		{"no memory export", without(ok, abi.ExportMemory).bytes(), codeExport, "memory"},
		{"hg_process with another type", withFunction(ok, fnProcess, wasmFunction{"ii:i", 0, i32(0)}).bytes(), codeExport, "hg_process as function (i32, i32) -> i32"},
		{"hg_init with another type", withFunction(ok, fnInit, wasmFunction{"i:i", 0, i32(0)}).bytes(), codeExport, "hg_init"},
		{"hg_process is a memory", exporting(without(ok, abi.ExportProcess), wasmExport{abi.ExportProcess, kindMemory, 0}).bytes(), codeExport, "as memory"},
		{"_start", exporting(ok, wasmExport{abi.ExportStart, kindFunction, fnDeep}).bytes(), codeExport, "_start"},
		{"env.abort", importing(ok, wasmImport{"env", "abort", kindFunction, "iiii:"}).bytes(), codeImport, "env.abort"},
		{"hg.yield", importing(ok, wasmImport{"hg", "yield", kindFunction, ":"}).bytes(), codeImport, "hg.yield"},
		{"hg.log with another type", importing(ok, wasmImport{"hg", "log", kindFunction, "ii:"}).bytes(), codeImport, "(i32, i32, i32)"},
		{"unknown WASI name", importing(ok, wasmImport{abi.WASIModule, "sock_open", kindFunction, "iii:i"}).bytes(), codeImport, "sock_open"},
		{"an imported global", importing(ok, wasmImport{"env", "g", kindGlobal, ""}).bytes(), codeImport, "global env.g"},
		{"an imported table", importing(ok, wasmImport{"env", "t", kindTable, ""}).bytes(), codeImport, "table env.t"},
		{"an imported memory", withMemory(importing(ok, wasmImport{"env", "memory", kindMemory, ""})).bytes(), codeImport, "memory env.memory"},
		{"no memory", withMemory(ok).bytes(), codeLimit, "0 memories"},
		{"two memories", withMemory(ok, "\x00\x01", "\x00\x01").bytes(), codeLimit, "2 memories"},
		{"shared memory", withMemory(ok, "\x03\x01\x02").bytes(), codeLimit, "shared"},
		{"64-bit memory", withMemory(ok, "\x04\x01").bytes(), codeLimit, "64-bit"},
		{"more memory than allowed", withMemory(ok, "\x00"+leb(65)).bytes(), codeLimit, "65 pages"},
		{"unknown capability", withFunction(ok, fnVersion, wasmFunction{":i", 0, i32(33)}).bytes(), codeExport, "0x20"},
		{"trap in hg_abi_v1", withFunction(ok, fnVersion, wasmFunction{":i", 0, unreachable}).bytes(), codeInit, "hg_abi_v1: wasm error: unreachable"},
		{"hg_alloc has no memory", withFunction(ok, fnAlloc, wasmFunction{"ii:i", 0, i32(0)}).bytes(), codeInit, "hg_alloc"},
		{"hg_alloc points behind the memory", withFunction(ok, fnAlloc, wasmFunction{"ii:i", 0, i32(-16)}).bytes(), codeInit, "not an aligned region"},
		{"hg_alloc is not aligned", withFunction(ok, fnAlloc, wasmFunction{"ii:i", 0, i32(8)}).bytes(), codeInit, "not an aligned region"},
		{"hg_alloc returns the same region twice", withMemory(withFunction(ok, fnAlloc, wasmFunction{"ii:i", 0, i32(16)}), "\x00"+leb(8)).bytes(), codeInit, "overlaps the region"},
		{"exit in _initialize", withFunction(exporting(ok, wasmExport{abi.ExportInitialize, kindFunction, fnDeep}), fnDeep,
			wasmFunction{":", 0, i32(7) + call(fnExit)}).bytes(), codeInit, "exited with code 7"},
	}
	for _, tt := range tests {
		r := admit(t, tt.wasm)
		if r.OK() || !slices.ContainsFunc(r.Checks, func(c Check) bool {
			return !c.OK && c.Code == tt.code && strings.Contains(c.Detail, tt.detail)
		}) {
			t.Errorf("%s: %+v; want %s with %q", tt.name, r.Checks, tt.code, tt.detail)
		}
	}
}

func TestAllFailedChecksAreListed(t *testing.T) {
	m := importing(base(), wasmImport{"env", "abort", kindFunction, "iiii:"})
	m.imports = append(m.imports, wasmImport{"env", "seed", kindFunction, ":"})
	r := admit(t, withMemory(m, "\x00"+leb(65)).bytes())
	var codes []string
	for _, c := range r.Checks {
		if !c.OK {
			codes = append(codes, c.Code)
		}
	}
	want := []string{codeImport, codeImport, codeExport, codeExport, codeExport, codeExport, codeLimit}
	if !slices.Equal(codes, want) {
		t.Errorf("codes %v, want %v: %s", codes, want, r.Failed())
	}
}

func TestAdmitted(t *testing.T) {
	m := scripted(false)
	m.custom = "Go"
	wasm := m.bytes()
	r := admit(t, wasm)
	if !r.OK() {
		t.Fatal(r.Failed())
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"digest":"` + Digest(wasm), `"abi":"hg_abi_v1"`, `"kind":"extractor+filter+transformer"`, `"languages":["Go"]`, `{"check":"init","ok":true}`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %s", text, want)
		}
	}
}

// Every name of WASI preview 1 may be imported: language runtimes import more than they call.
func TestL16WholeWASI(t *testing.T) {
	m := base()
	var imports []wasmImport
	for name, f := range wasiFunctions {
		imports = append(imports, wasmImport{abi.WASIModule, name, kindFunction, f.params + ":" + f.result})
	}
	m.imports = append(m.imports, imports...)
	for i := range m.exports { // their functions move behind the imports
		if m.exports[i].kind == kindFunction {
			m.exports[i].index += len(imports)
		}
	}
	m = withFunction(m, fnDeep, wasmFunction{":", 0, ""})
	if r := admit(t, m.bytes()); !r.OK() || len(wasiFunctions) != 46 {
		t.Errorf("%d functions: %s", len(wasiFunctions), r.Failed())
	}
}

func TestLoadRefusesWithTheFailedChecks(t *testing.T) {
	_, err := hostOf(t, Config{}).Load(context.Background(), without(base(), abi.ExportAlloc).bytes())
	var p *event.Problem
	if !errors.As(err, &p) || p.Code != event.PluginRefused || !strings.Contains(p.Detail, "E_EXPORT does not export the function hg_alloc") {
		t.Errorf("error %v", err)
	}
}

func TestConfigurationOfTheHost(t *testing.T) {
	for _, cfg := range []Config{{Instances: -1}, {MaxModule: 33 << 20}, {MaxMemory: 100_000}, {MaxMemory: 512 << 20}} {
		if _, err := New(cfg, nil, nil); err == nil {
			t.Errorf("%+v is taken", cfg)
		}
	}
}

func TestLayoutCutAtEachByte(t *testing.T) {
	m := scripted(false)
	m.custom = "Go"
	wasm := m.bytes()
	for n := range wasm {
		meter.ReadLayout(wasm[:n])
	}
	if l, err := meter.ReadLayout(wasm); err != nil || len(l.Exports) != 5 || l.Languages[0] != "Go" {
		t.Errorf("%+v %v", l, err)
	}
}

func FuzzLayout(f *testing.F) {
	f.Add(scripted(false).bytes())
	f.Add(withMemory(base(), "\x04\x01").bytes())
	f.Fuzz(func(t *testing.T, wasm []byte) {
		l, err := meter.ReadLayout(wasm)
		if err != nil {
			return
		}
		if n := len(l.Imports) + len(l.Memories) + len(l.Exports) + len(l.Languages); n > len(wasm) {
			t.Errorf("%d entries from %d bytes", n, len(wasm))
		}
		importFaults(l)
		exportFaults(l)
	})
}
