package plugins

import (
	"os"
	"path/filepath"
	"testing"
)

// exampleInC is the committed module of examples/plugins/accesslog-c.
func exampleInC(t testing.TB) []byte {
	t.Helper()
	wasm, err := os.ReadFile(filepath.Join("..", "examples", "plugins", "accesslog-c", "accesslog.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

func BenchmarkCExample(b *testing.B) {
	h := hostOf(b, Config{Instances: 1})
	benchmark(b, chainOf(b, h, Step{Name: "accesslog", Module: loadOf(b, h, exampleInC(b)), Config: []byte(`{"drop_status_from":500}`)}))
}
