package plugins

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/event"
)

// target is what a guest may cost, in ns of CPU for an event of 240 bytes.
type target struct {
	name              string
	wasm              func(testing.TB) []byte
	great, acceptable float64
}

// TestTargets prints what guests of each language cost beside what they should, and what a poisoned event and a new version
// do. It takes CPU time, and the best of many turns: on a busy machine the figures still grow, and their ratios tell more. On
// demand, by make bench-plugins.
func TestTargets(t *testing.T) {
	if os.Getenv("HEADGATE_TARGETS") == "" {
		t.Skip("measures: run make bench-plugins")
	}
	targets := []target{
		{"host side alone", func(testing.TB) []byte { return idle().bytes() }, 25, 50},
		{"C with SIMD", exampleInC, 165, 250},
		{"Rust", func(t testing.TB) []byte { return committed(t, exampleInRust) }, 400, 550},
		{"AssemblyScript", func(t testing.TB) []byte { return committed(t, exampleInAssemblyScript) }, 480, 660},
		{"Go", example, 1050, 1400},
	}
	batch := shortLog(t)
	t.Logf("%-24s %10s %10s %10s %12s", "events of 240 bytes", "ns", "great", "acceptable", "to the host")
	var host float64
	for _, g := range targets {
		ns := costOf(t, g.wasm(t), batch)
		if host == 0 {
			host = ns
		}
		t.Logf("%-24s %10.0f %10.0f %10.0f %12.1f", g.name, ns, g.great, g.acceptable, ns/host)
	}
	t.Logf("%-24s %10s %10s", "", "ms", "great")
	for _, g := range []struct {
		name  string
		wasm  []byte
		great float64
	}{{"poison event, C", exampleInC(t), 0.1}, {"poison event, Go", example(t), 5}} {
		t.Logf("%-24s %10.2f %10.1f", g.name, poisonCost(t, g.wasm), g.great)
	}
	for _, g := range []struct {
		name  string
		wasm  []byte
		great float64
	}{{"upload to live, C", exampleInC(t), 50}, {"upload to live, Go", example(t), 1300}} {
		t.Logf("%-24s %10.1f %10.0f", g.name, liveCost(t, g.wasm), g.great)
	}
}

// shortLog is 256 access log lines of 240 bytes on average, in JSON.
func shortLog(t *testing.T) *event.Batch {
	b := &event.Batch{Stream: "web", Syntax: event.JSON}
	size := 0
	for i := range 256 {
		line := fmt.Sprintf(`{"time":"2015-05-17T10:%02d:03.000Z","remote_ip":"10.%d.119.%d","remote_user":"-","request":"GET /images/%s.png HTTP/1.1","response":%d,"bytes":%d,"referrer":"http://example.com/","agent":"Mozilla/5.0 (X11; Linux x86_64) Firefox/27.0"}`,
			i%60, i%250, i*7%250, strings.Repeat("k", 1+i%8), 200+i%50*4, i*1009)
		size += len(line)
		b.Events = append(b.Events, event.Event{Data: []byte(line)})
	}
	if mean := size / len(b.Events); mean < 230 || mean > 250 {
		t.Fatalf("%d bytes an event", mean)
	}
	return b
}

// costOf is the ns of CPU that a guest takes for an event.
func costOf(t *testing.T, wasm []byte, batch *event.Batch) float64 {
	h := hostOf(t, Config{Instances: 1})
	c := chainOf(t, h, Step{Name: "guest", Module: loadOf(t, h, wasm), Config: []byte(`{"drop_status_from":500}`)})
	best := 0.0
	for range 200 {
		ns := wayTurn(batch, func() {
			if err := c.Process(context.Background(), batch); err != nil {
				t.Fatal(err)
			}
		})
		if best == 0 || ns < best {
			best = ns
		}
	}
	return best
}

// poisonCost is the ms of CPU that an event costs on which the guest traps, but for the call itself: an instance in place of
// the one that is spoiled.
func poisonCost(t *testing.T, wasm []byte) float64 {
	h := hostOf(t, Config{Instances: 1})
	m := loadOf(t, h, wasm)
	c := chainOf(t, h, Step{Name: "guest", Module: m})
	s := c.places[0].active
	var all []float64
	for range 20 {
		before := cpuTime()
		in, err := s.newInstance(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, float64(cpuTime()-before)/1e6)
		in.close()
	}
	return slices.Min(all)
}

// liveCost is the ms of CPU from a module to the chain that has it.
func liveCost(t *testing.T, wasm []byte) float64 {
	var all []float64
	for range 3 {
		h := hostOf(t, Config{Instances: 1, CacheDir: t.TempDir()})
		before := cpuTime()
		if r, err := h.Admit(t.Context(), wasm); err != nil || !r.OK() {
			t.Fatal(err, r)
		}
		chainOf(t, h, Step{Name: "guest", Module: loadOf(t, h, wasm), Config: []byte(`{"drop_status_from":500}`)})
		all = append(all, float64(cpuTime()-before)/1e6)
	}
	return slices.Min(all)
}
