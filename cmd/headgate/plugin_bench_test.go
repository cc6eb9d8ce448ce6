package main

import (
	"strings"
	"testing"
)

// The columns of the table are below their heads also when a module's path is long.
func TestTheTableOfABenchIsEven(t *testing.T) {
	var out strings.Builder
	b := &bench{out: &out}
	r := benchResult{Bytes: 179, Check: 77, Builtin: 18, Plugins: []benchModule{
		{Module: "a.wasm", Cost: 166, Memory: 384 << 10},
		{Module: "examples/plugins/accesslog-assemblyscript/accesslog.wasm", Cost: 282, Memory: 384 << 10},
	}}
	if err := b.print(r); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	for _, line := range lines {
		if len(lines) != 5 || len(line) != len(lines[0]) {
			t.Fatalf("uneven:\n%s", out.String())
		}
	}
}
