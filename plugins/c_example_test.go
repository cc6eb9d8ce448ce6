package plugins

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/event"
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

func featuresInC(t *testing.T, config string) *Chain {
	h := hostOf(t, Config{Instances: 1})
	return chainOf(t, h, Step{Name: "features", Module: loadOf(t, h, compileC(t, "../sdk/c/testdata/features.c")), Config: []byte(config), OnError: Policy{Action: Reject}})
}

func TestCSDK(t *testing.T) {
	c := featuresInC(t, `{"suffix":"\u002b\"","x":1}`)
	b := batchOf(
		`{"do":"reject"}`,
		`{"do":"replace"}`,
		`{"do":"replace by part","arg":"part"}`,
		`{"do":"empty key"}`,
		`{"do":"literal"}`,
		`{"do":"long name","a name that is longer than two vectors of 16":12,"a name that is longer than two vectors of 17":13}`,
		`{"do":"header"}`,
		`{"do":"no header"}`,
		`{"do":"arrived"}`,
		`{"do":"log","arg":"x"}`,
		`{"do":"count"}`,
		`{"do":"changing","arg":"x"}`,
		`{"do":"changing","arg":"y"}`,
		`{"do":"trap"}`,
		`{"do":"memory"}`,
		`{"do":"replace"}`,
	)
	b.Arrived = 1234567890123456789
	b.Headers = []event.Attr{{Name: []byte("x-key-"), Value: nil}, {Name: []byte("x-key"), Value: []byte("k")}}
	process(t, c, b)
	want := "rejected plugin_rejected\naccepted\naccepted\naccepted key=\naccepted key=literal\naccepted key=12\naccepted key=k\naccepted\naccepted key=then\n" +
		"accepted\naccepted\naccepted key=x\naccepted key=y\nrejected plugin_failed\nrejected plugin_failed\naccepted\n"
	if got := outcomes(b); got != want {
		t.Errorf("got\n%s want\n%s", got, want)
	}
	for i, data := range map[int]string{1: `{"do":"replace"}+"`, 2: "part", 15: `{"do":"replace"}+"`} {
		if got := string(b.Events[i].Data); got != data {
			t.Errorf("event %d became %q", i, got)
		}
	}
	if !strings.Contains(b.Errors[0].Detail, "reason 7") || !strings.Contains(b.Errors[1].Detail, "TRAP") || !strings.Contains(b.Errors[2].Detail, "OOM") {
		t.Errorf("errors %v", b.Errors)
	}
	if n := c.steps[0].bill.counters[3].Load(); n != 5 {
		t.Errorf("counter %d", n)
	}
	if line := c.steps[0].outside.lastLine(); line != ": x" {
		t.Errorf("log %q", line)
	}
}

func TestCSDKRefusesAConfiguration(t *testing.T) {
	h := hostOf(t, Config{Instances: 1})
	m := loadOf(t, h, compileC(t, "../sdk/c/testdata/features.c"))
	_, err := h.NewChain(t.Context(), []Step{{Name: "features", Module: m, Config: []byte(`{}`)}}, Rules{})
	if err == nil || !strings.Contains(err.Error(), "no suffix") {
		t.Error(err)
	}
}

// Memory that a larger batch needs replaces what was there: the guest stays small, and gets events of any size.
func TestCSDKGrowsInPlace(t *testing.T) {
	h := hostOf(t, Config{Instances: 1, MaxMemory: 20 << 20})
	c := chainOf(t, h, Step{Name: "accesslog", Module: loadOf(t, h, exampleInC(t))})
	for size := 1 << 10; size <= 12<<20; size *= 2 {
		b := batchOf(`{"x":"` + strings.Repeat("x", size) + `","remote_ip":"a"}`)
		process(t, c, b)
		if got := outcomes(b); got != "accepted key=a\n" {
			t.Fatalf("%d bytes: %s%v", size, got, b.Errors)
		}
	}
}

func BenchmarkCExample(b *testing.B) {
	h := hostOf(b, Config{Instances: 1})
	benchmark(b, chainOf(b, h, Step{Name: "accesslog", Module: loadOf(b, h, exampleInC(b)), Config: []byte(`{"drop_status_from":500}`)}))
}
