package plugins

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Folders of the accesslog example in other languages; each holds accesslog.wasm, committed.
var (
	exampleInRust           = filepath.Join("..", "examples", "plugins", "accesslog-rust")
	exampleInAssemblyScript = filepath.Join("..", "examples", "plugins", "accesslog-assemblyscript")
)

func committed(t testing.TB, folder string) []byte {
	t.Helper()
	wasm, err := os.ReadFile(filepath.Join(folder, "accesslog.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

func BenchmarkRustExample(b *testing.B)           { benchmarkCommitted(b, exampleInRust) }
func BenchmarkAssemblyScriptExample(b *testing.B) { benchmarkCommitted(b, exampleInAssemblyScript) }

func benchmarkCommitted(b *testing.B, folder string) {
	h := hostOf(b, Config{Instances: 1})
	benchmark(b, chainOf(b, h, Step{Name: "accesslog", Module: loadOf(b, h, committed(b, folder)), Config: []byte(`{"drop_status_from":500}`)}))
}

// rustc returns the Rust compiler that has the target WebAssembly, which need not be the first one in the path; without
// one it skips the test.
func rustc(t testing.TB) string {
	t.Helper()
	needTools(t, "make", "wasm-ld-14")
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		tool := filepath.Join(dir, "rustc")
		root, err := exec.Command(tool, "--print", "sysroot").Output()
		if err != nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(strings.TrimSpace(string(root)), "lib/rustlib/wasm32-unknown-unknown")); err == nil {
			return tool
		}
	}
	t.Skip("no rustc with the target wasm32-unknown-unknown is installed")
	return ""
}

func needTools(t testing.TB, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the tool %s is not installed", tool)
		}
	}
}

func compileRust(t testing.TB, source string, variables ...string) []byte {
	t.Helper()
	return makeIn(t, exampleInRust, source, append(variables, "RUSTC="+rustc(t))...)
}

func compileAssemblyScript(t testing.TB, source string) []byte {
	t.Helper()
	needTools(t, "make", "asc")
	return makeIn(t, exampleInAssemblyScript, source)
}

// makeIn makes a module of a source file by the rule of an example.
func makeIn(t testing.TB, folder, source string, variables ...string) []byte {
	t.Helper()
	source, err := filepath.Abs(source)
	if err != nil {
		t.Fatal(err)
	}
	if folder, err = filepath.Abs(folder); err != nil {
		t.Fatal(err)
	}
	if source, err = filepath.Rel(folder, source); err != nil { // asc knows no other paths
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out.wasm")
	cmd := exec.Command("make", append([]string{"-s", "-C", folder, "OUT=" + out, "SOURCE=" + source}, variables...)...)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// madeBy skips a test unless the tool is the one that made the committed module.
func madeBy(t *testing.T, tool, version string) {
	t.Helper()
	here, err := exec.Command(tool, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(here, []byte(version)) {
		t.Skipf("the module was made by %s, here is %s", version, here)
	}
}

// The committed modules are what their sources say.
func TestL17ExamplesAreRebuilt(t *testing.T) {
	t.Run("Rust", func(t *testing.T) {
		madeBy(t, rustc(t), "rustc 1.63.0")
		same(t, exampleInRust, compileRust(t, filepath.Join(exampleInRust, "lib.rs")))
	})
	t.Run("AssemblyScript", func(t *testing.T) {
		needTools(t, "make", "asc")
		madeBy(t, "asc", "Version 0.28.20")
		same(t, exampleInAssemblyScript, compileAssemblyScript(t, filepath.Join(exampleInAssemblyScript, "accesslog.ts")))
	})
}

func same(t *testing.T, folder string, built []byte) {
	t.Helper()
	if !bytes.Equal(built, committed(t, folder)) {
		t.Errorf("the module built here differs from the committed one: run make in %s", folder)
	}
}
