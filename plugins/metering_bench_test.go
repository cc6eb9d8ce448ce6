package plugins

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/headgate-io/headgate/event"
)

// BenchmarkMetering compares guests as they are written and as they are compiled, by turns, and takes the best of
// each: what else the machine does only ever adds.
func BenchmarkMetering(b *testing.B) {
	guests := []struct {
		name string
		wasm func(testing.TB) []byte
	}{
		{"C", exampleInC},
		{"C without vectors", func(t testing.TB) []byte {
			return compileC(t, filepath.Join(exampleInCFolder, "accesslog.c"), "-mno-simd128")
		}},
		{"Go", example},
		{"Go with encoding/json", func(t testing.TB) []byte {
			wasm, err := buildGo("./testdata/gojson")
			if err != nil {
				t.Fatal(err)
			}
			return wasm
		}},
	}
	for _, g := range guests {
		b.Run(g.name, func(b *testing.B) {
			plain, metered := meteringChain(b, g.wasm(b), true), meteringChain(b, g.wasm(b), false)
			batch := accessLog(b, 256)
			var without, with []float64
			for b.Loop() {
				without = append(without, turn(b, plain, batch))
				with = append(with, turn(b, metered, batch))
			}
			fast, slow := slices.Min(without), slices.Min(with)
			b.ReportMetric(fast, "unmetered-ns/event")
			b.ReportMetric(slow, "metered-ns/event")
			b.ReportMetric(100*(slow/fast-1), "%more")
		})
	}
}

func meteringChain(b *testing.B, wasm []byte, unmetered bool) *Chain {
	h := hostOf(b, Config{Instances: 1})
	h.unmetered = unmetered
	return chainOf(b, h, Step{Name: "accesslog", Module: loadOf(b, h, wasm), Config: []byte(`{"drop_status_from":500}`)})
}

// turn processes the batch some times and returns the CPU time for an event, in ns.
func turn(b *testing.B, c *Chain, batch *event.Batch) float64 {
	const times = 20
	before := cpuTime()
	for range times {
		for i := range batch.Events {
			batch.Events[i].Verdict, batch.Events[i].HasKey = event.Keep, false
		}
		if err := c.Process(context.Background(), batch); err != nil {
			b.Fatal(err)
		}
	}
	return float64(cpuTime()-before) / float64(times*len(batch.Events))
}
