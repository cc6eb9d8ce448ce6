package plugins

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/event"
)

// vectors is a file of sdk/vectors.
type vectors struct {
	Config string
	Batch  []struct {
		Event, Verdict string
		Key            *string
	}
}

// guests returns the accesslog examples of all languages.
func guests(t testing.TB) map[string][]byte {
	return map[string][]byte{"Go": example(t), "C": exampleInC(t), "Rust": committed(t, exampleInRust), "AssemblyScript": committed(t, exampleInAssemblyScript)}
}

func TestVectors(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "sdk", "vectors", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal("no vectors: ", err)
	}
	for language, wasm := range guests(t) {
		h := hostOf(t, Config{Instances: 1})
		m := loadOf(t, h, wasm)
		for _, file := range files {
			t.Run(language+"/"+filepath.Base(file), func(t *testing.T) { vectorsOf(t, file).try(t, h, m) })
		}
	}
}

func vectorsOf(t *testing.T, file string) (v vectors) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &v); err != nil || len(v.Batch) == 0 {
		t.Fatal("no batch: ", err)
	}
	return v
}

func (v vectors) try(t *testing.T, h *Host, m *Module) {
	c := chainOf(t, h, Step{Name: "accesslog", Module: m, Config: []byte(v.Config)})
	var events, want []string
	for _, e := range v.Batch {
		outcome := map[string]string{"keep": "accepted", "drop": "filtered"}[e.Verdict]
		if e.Key != nil {
			outcome += " key=" + *e.Key
		}
		events, want = append(events, e.Event), append(want, outcome+"\n")
	}
	compare(t, c, events, want)
	for i := range events { // with nothing behind the event but zeros
		compare(t, c, events[i:i+1], want[i:i+1])
	}
}

func compare(t *testing.T, c *Chain, events, want []string) {
	t.Helper()
	b := batchOf(events...)
	b.Syntax = event.JSON
	process(t, c, b)
	if got := outcomes(b); got != strings.Join(want, "") {
		for i := range b.Events {
			if one := outcomes(&event.Batch{Events: b.Events[i : i+1]}); one != want[i] {
				t.Errorf("%s\ngot  %q\nwant %q", events[i], one, want[i])
			}
		}
	}
}
