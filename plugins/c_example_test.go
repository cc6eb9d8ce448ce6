package plugins

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var exampleInCFolder = filepath.Join("..", "examples", "plugins", "accesslog-c")

// exampleInC is the committed module of examples/plugins/accesslog-c.
func exampleInC(t testing.TB) []byte {
	t.Helper()
	wasm, err := os.ReadFile(filepath.Join(exampleInCFolder, "accesslog.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// needC skips a test where C can't be compiled to WebAssembly.
func needC(t testing.TB) {
	t.Helper()
	for _, tool := range []string{"clang-19", "wasm-ld-19", "make"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the tool %s is not installed", tool)
		}
	}
}

// compileC makes a module of a C file, by the rule of the example.
func compileC(t testing.TB, source string, flags ...string) []byte {
	t.Helper()
	needC(t)
	source, err := filepath.Abs(source)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out.wasm")
	cmd := exec.Command("make", "-s", "-C", exampleInCFolder, "OUT="+out, "SOURCE="+source, "EXTRA="+strings.Join(flags, " "))
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// The committed module is what its source says.
func TestCExampleIsRebuilt(t *testing.T) {
	needC(t)
	version, err := exec.Command("clang-19", "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	if made := "clang version 19.1.7"; !bytes.Contains(version, []byte(made)) {
		t.Skipf("the module was made by %s, here is %s", made, version)
	}
	if built := compileC(t, filepath.Join(exampleInCFolder, "accesslog.c")); !bytes.Equal(built, exampleInC(t)) {
		t.Errorf("the module built here differs from the committed one: run make in %s", exampleInCFolder)
	}
}

func TestCExampleIsAdmitted(t *testing.T) {
	r, err := hostOf(t, Config{}).Admit(t.Context(), exampleInC(t))
	if err != nil || !r.OK() {
		t.Errorf("%v: %+v", err, r)
	}
	if len(exampleInC(t)) > 16<<10 {
		t.Errorf("it has %d bytes", r.Size)
	}
}

func BenchmarkCExample(b *testing.B) {
	h := hostOf(b, Config{Instances: 1})
	benchmark(b, chainOf(b, h, Step{Name: "accesslog", Module: loadOf(b, h, exampleInC(b)), Config: []byte(`{"drop_status_from":500}`)}))
}
