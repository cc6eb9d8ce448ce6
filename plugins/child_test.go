package plugins

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/race"
)

// apartHostOf is a host whose modules are compiled by another process: this binary, see TestMain.
func apartHostOf(t testing.TB, cfg Config) *Host {
	t.Helper()
	if !compilesApart {
		t.Skip("modules are compiled by this process on this system")
	}
	cfg.Compiler = []string{"/proc/self/exe", compileCommand}
	return hostOf(t, cfg)
}

func TestL19ModulesAreCompiledApart(t *testing.T) {
	dir := t.TempDir()
	h := apartHostOf(t, Config{Instances: 1, CacheDir: dir})
	wasm := scripted(false).bytes()
	serve := func() {
		b := batchOf("ka", "t", "kb")
		process(t, chainOf(t, h, Step{Name: "scripted", Module: loadOf(t, h, wasm)}), b)
		if got := outcomes(b); got != "accepted key=a\nrejected plugin_failed\naccepted key=b\n" {
			t.Errorf("got %s", got)
		}
	}
	serve()
	if len(h.Kept()) != 1 {
		t.Errorf("kept %v", h.Kept())
	}
	h.cfg.Compiler = []string{"/bin/false"} // not needed again
	serve()
}

// A cache that can't be used costs a compilation each time, by the other process still.
func TestL19CompiledApartWithoutACache(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"", file} {
		h := apartHostOf(t, Config{Instances: 1, CacheDir: dir})
		r, err := h.Admit(context.Background(), scripted(false).bytes())
		if err != nil || !r.OK() {
			t.Errorf("%v %s", err, r.Failed())
		}
		h.cfg.Compiler = []string{"/bin/false"}
		if r, err = h.Admit(context.Background(), scripted(false).bytes()); err != nil || !strings.HasPrefix(r.Failed(), codeCompile+" the compiler ended: exit status 1") {
			t.Errorf("%v %s", err, r.Failed())
		}
	}
}

// Cases L19 and F64: modules within all limits that a compiler takes long or much memory for are refused by name, and
// this process neither computes nor grows.
func TestL19F64CompileBombs(t *testing.T) {
	tests := []struct {
		name   string
		limits compileLimits
		code   string
	}{
		{"CPU", compileLimits{1, compileBytes, time.Hour}, codeCompileTime},
		{"wall clock", compileLimits{compileSeconds, compileBytes, 200 * time.Millisecond}, codeCompileTime},
		{"memory", compileLimits{compileSeconds, 40 << 20, time.Hour}, codeCompileMemory},
	}
	wasm := bomb(20)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if race.Enabled && tt.code == codeCompileMemory {
				t.Skip("a compiler with the race detector in it needs more memory than that to start")
			}
			h := apartHostOf(t, Config{Instances: 1, CacheDir: t.TempDir()})
			h.compileLimits = tt.limits
			r, err := h.Admit(t.Context(), wasm)
			if err != nil || !strings.HasPrefix(r.Failed(), tt.code+" ") {
				t.Errorf("%v %s, want %s", err, r.Failed(), tt.code)
			}
			if len(h.Kept()) != 0 {
				t.Errorf("kept %v", h.Kept())
			}
		})
	}
}

func TestF64InvalidModuleIsRefusedByTheCompiler(t *testing.T) {
	h := apartHostOf(t, Config{CacheDir: t.TempDir()})
	r, err := h.Admit(t.Context(), withFunction(base(), fnProcess, wasmFunction{"i:i", 0, add}).bytes())
	if err != nil || !strings.HasPrefix(r.Failed(), codeMalformed+" ") {
		t.Errorf("%v %s", err, r.Failed())
	}
}

// bomb is a plugin with so many functions of the largest size, each with many blocks over many locals.
func bomb(functions int) []byte {
	m := base()
	code := strings.Repeat(get(0)+if_+get(1)+set(2)+get(2)+set(1)+end, (mostBody-100)/13)
	for range functions {
		m.functions = append(m.functions, wasmFunction{"i:", 1998, code})
	}
	return m.bytes()
}

// mostBody is how many bytes a function may have, see package meter.
const mostBody = 128 << 10
