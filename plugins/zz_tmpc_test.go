package plugins

import (
	"os"
	"strings"
	"testing"
)

func BenchmarkCV(b *testing.B) {
	for _, f := range strings.Fields(os.Getenv("CV")) {
		b.Run(f, func(b *testing.B) {
			w, err := os.ReadFile("/tmp/hg/cv/" + f + ".wasm")
			if err != nil {
				b.Fatal(err)
			}
			h := hostOf(b, Config{Instances: 1})
			benchmark(b, chainOf(b, h, Step{Name: "x", Module: loadOf(b, h, w), Config: []byte(`{"drop_status_from":500}`)}))
		})
	}
}
