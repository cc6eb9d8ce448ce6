package plugins

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/event"
)

// The SDKs that leave the collector out have the same features, which testdata/features of each shows.
var features = map[string]func(t testing.TB) []byte{
	"C":    func(t testing.TB) []byte { return compileC(t, "../sdk/c/testdata/features.c") },
	"Rust": func(t testing.TB) []byte { return compileRust(t, "../sdk/rust/testdata/features.rs") },
	"AssemblyScript": func(t testing.TB) []byte {
		return compileAssemblyScript(t, "../sdk/assemblyscript/testdata/features.ts")
	},
}

func featuresIn(t *testing.T, wasm []byte, config string) *Chain {
	h := hostOf(t, Config{Instances: 1})
	return chainOf(t, h, Step{Name: "features", Module: loadOf(t, h, wasm), Config: []byte(config), OnError: Policy{Action: Reject}})
}

func TestL17FeaturesOfTheSDKs(t *testing.T) {
	for language, build := range features {
		t.Run(language, func(t *testing.T) { tryFeatures(t, featuresIn(t, build(t), `{"suffix":"\u002b\"","x":1}`)) })
	}
}

func tryFeatures(t *testing.T, c *Chain) {
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
	if n := c.places[0].active.bill.counters[3].Load(); n != 5 {
		t.Errorf("counter %d", n)
	}
	if line := c.places[0].active.outside.lastLine(); line != ": x" {
		t.Errorf("log %q", line)
	}
}

func TestL17SDKsRefuseAConfiguration(t *testing.T) {
	for language, build := range features {
		t.Run(language, func(t *testing.T) {
			h := hostOf(t, Config{Instances: 1})
			m := loadOf(t, h, build(t))
			_, err := h.NewChain(t.Context(), []Step{{Name: "features", Module: m, Config: []byte(`{}`)}}, Rules{})
			if err == nil || !strings.Contains(err.Error(), "no suffix") {
				t.Error(err)
			}
		})
	}
}

// Memory that a larger batch needs replaces what was there: the guest stays small, and gets events of any size.
func TestSDKsGrowInPlace(t *testing.T) {
	for language, wasm := range map[string][]byte{"C": exampleInC(t), "Rust": committed(t, exampleInRust)} {
		t.Run(language, func(t *testing.T) {
			h := hostOf(t, Config{Instances: 1, MaxMemory: 20 << 20})
			growing(t, chainOf(t, h, Step{Name: "accesslog", Module: loadOf(t, h, wasm)}))
		})
	}
	t.Run("AssemblyScript", func(t *testing.T) { // has the old region until the new one is there
		h := hostOf(t, Config{Instances: 1, MaxMemory: 40 << 20})
		growing(t, chainOf(t, h, Step{Name: "accesslog", Module: loadOf(t, h, committed(t, exampleInAssemblyScript))}))
	})
}

func growing(t *testing.T, c *Chain) {
	for size := 1 << 10; size <= 12<<20; size *= 2 {
		b := batchOf(`{"x":"` + strings.Repeat("x", size) + `","remote_ip":"a"}`)
		process(t, c, b)
		if got := outcomes(b); got != "accepted key=a\n" {
			t.Fatalf("%d bytes: %s%v", size, got, b.Errors)
		}
	}
}

// What a batch needs is forgotten with it: after some batches a guest has all the memory it will ever have, also when each
// event needs some of its own.
func TestL01MemoryOfTheSDKsStaysFlat(t *testing.T) {
	for language, wasm := range guests(t) {
		t.Run(language, func(t *testing.T) {
			h := hostOf(t, Config{Instances: 1})
			c := chainOf(t, h, Step{Name: "accesslog", Module: loadOf(t, h, wasm), Config: []byte(`{"drop_status_from":500}`)})
			run := func(batches int) int64 {
				for range batches {
					b := &event.Batch{Stream: "s", Syntax: event.JSON}
					for range 256 {
						b.Events = append(b.Events, event.Event{Data: []byte(`{"remote\u005fip":"10.\u0030.0.1","response":200,"x":"` + strings.Repeat("y", 100) + `"}`)})
					}
					process(t, c, b)
					if e := b.Events[255]; string(e.Key) != "10.0.0.1" {
						t.Fatalf("%+v", e)
					}
				}
				return int64(c.places[0].active.bill.memory.Load())
			}
			first := run(20)
			batches := 400
			if n, err := strconv.Atoi(os.Getenv("HEADGATE_EVENTS")); err == nil {
				batches = n / 256
			}
			now := run(batches)
			if now > first+first/10 {
				t.Errorf("%d bytes after 5,120 events, %d after %d more", first, now, batches*256)
			}
			t.Logf("%d KiB after 5,120 events, %d KiB after %d more", first>>10, now>>10, batches*256)
		})
	}
}
