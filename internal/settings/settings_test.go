package settings

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

type sample struct {
	Data string `json:"data"`
	HTTP struct {
		Listen      string   `json:"listen"`
		ReadTimeout Duration `json:"read_timeout"`
	} `json:"http"`
	Memory  Bytes             `json:"memory"`
	Streams map[string]stream `json:"streams"`
}

type stream struct {
	Partitions partitions `json:"partitions"`
	Plugins    []struct {
		Name   string         `json:"name"`
		Config map[string]any `json:"config"`
	} `json:"plugins"`
}

type partitions struct {
	Min int `json:"min"`
	Max int `json:"max"`
}

func (p *partitions) UnmarshalText(text []byte) error {
	return json.Unmarshal(text, &p.Max)
}

func decode(t *testing.T, doc string) (sample, error) {
	t.Helper()
	tree, err := Parse([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	var s sample
	return s, tree.Decode(&s)
}

func TestDecode(t *testing.T) {
	tree, err := Parse([]byte(`
http: {listen: ":1", read_timeout: 10s}
memory: 256MiB
streams:
  web: {partitions: 16, plugins: [{name: nginx, config: {drop: 500}}]}
  app: {partitions: {min: 4, max: 8}}
`))
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.SetArgument("http.listen=127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	var s sample
	if err := tree.Decode(&s); err != nil {
		t.Fatal(err)
	}
	if s.HTTP.Listen != "127.0.0.1:0" || time.Duration(s.HTTP.ReadTimeout) != 10*time.Second || s.Memory != 256<<20 {
		t.Errorf("scalars: %+v", s)
	}
	if s.Streams["web"].Partitions.Max != 16 || s.Streams["app"].Partitions.Min != 4 || s.Streams["web"].Plugins[0].Name != "nginx" {
		t.Errorf("streams: %+v", s.Streams)
	}
}

func TestDecodeNamesEachErrorByItsPath(t *testing.T) {
	for doc, want := range map[string]string{
		"http: {listn: x}":                          `http.listn: unknown setting; did you mean "listen"?`,
		"streams: {web: {partitons: 3}}":            `streams.web.partitons: unknown setting; did you mean "partitions"?`,
		"streams: {web: {xy: 3}}":                   `streams.web.xy: unknown setting; valid here: partitions`,
		"memory: many":                              `memory: "many" is not a size`,
		"http: {read_timeout: 10}":                  `http.read_timeout: "10" is not a duration`,
		"http: 7":                                   `http: `,
		"streams: {web: {plugins: [{nam: nginx}]}}": `did you mean "name"?`,
	} {
		_, err := decode(t, doc)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", doc, err, want)
		}
	}
	_, err := decode(t, "http: {listn: x, raed_timeout: 1s}\nmemory: many")
	if n := strings.Count(err.Error(), "\n"); n != 2 {
		t.Errorf("want three errors in three lines, got %v", err)
	}
}

func TestSet(t *testing.T) {
	tree := Tree{"partitions": 16, "limits": map[string]any{"event": "1MiB"}}
	for _, arg := range []string{"limits.event=2MiB", "key.json=/a", "partitions="} {
		if err := tree.SetArgument(arg); err != nil {
			t.Error(err)
		}
	}
	want := Tree{"limits": map[string]any{"event": "2MiB"}, "key": map[string]any{"json": "/a"}}
	if !reflect.DeepEqual(tree, want) {
		t.Errorf("%v, want %v", tree, want)
	}
	for _, arg := range []string{"limits", "=1", "a..b=1", "key.json.deeper=1", "a=["} {
		if err := tree.SetArgument(arg); err == nil {
			t.Errorf("%q was taken: %v", arg, tree)
		}
	}
}

// TestURLsInFlowStyle: colons inside plain words are no mappings (some YAML libraries take them for ones in flow maps).
func TestURLsInFlowStyle(t *testing.T) {
	tree, err := Parse([]byte(`{lake: {nodes: [http://127.0.0.1:1/x, http://127.0.0.1:2/x]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := tree["lake"].(map[string]any)["nodes"].([]any); len(got) != 2 || got[0] != "http://127.0.0.1:1/x" {
		t.Errorf("%v", got)
	}
}

func TestParseRefusesDoubledKeysAndBrokenYAML(t *testing.T) {
	for _, doc := range []string{"a: 1\na: 2", "a: [", "- a\n- b"} {
		if tree, err := Parse([]byte(doc)); err == nil {
			t.Errorf("%q: parsed as %v", doc, tree)
		}
	}
}

func TestEnvironment(t *testing.T) {
	tree := Tree{}
	warnings, err := tree.Environment([]string{"HEADGATE_HTTP_READ_TIMEOUT=3s", "HEADGATE_URL=x", "HEADGATE_HTTP_LISTN=y", "HOME=/"},
		"HEADGATE_", sample{}, "HEADGATE_URL")
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], `did you mean "HEADGATE_HTTP_LISTEN"?`) {
		t.Errorf("warnings: %v", warnings)
	}
	var s sample
	if err := tree.Decode(&s); err != nil || time.Duration(s.HTTP.ReadTimeout) != 3*time.Second {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestUnitsRoundTrip(t *testing.T) {
	for text, want := range map[string]Bytes{"512KiB": 512 << 10, "10GiB": 10 << 30, "4096": 4096, "1.5MiB": 3 << 19, "100KB": 100_000, "0": 0} {
		var b, again Bytes
		if err := b.UnmarshalText([]byte(text)); err != nil || b != want {
			t.Errorf("%s: %d, %v", text, b, err)
		}
		if err := again.UnmarshalText([]byte(b.String())); err != nil || again != b {
			t.Errorf("%s written as %s reads as %d", text, b, again)
		}
	}
	for _, text := range []string{"", "x", "-1", "1e30GiB", "KiB"} {
		var b Bytes
		if err := b.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q: read as %d", text, b)
		}
	}
}

func TestDurationsWithDays(t *testing.T) {
	for text, want := range map[string]time.Duration{"7d": 7 * 24 * time.Hour, "1d12h": 36 * time.Hour, "0d": 0, "90s": 90 * time.Second} {
		var d, again Duration
		if err := d.UnmarshalText([]byte(text)); err != nil || time.Duration(d) != want {
			t.Errorf("%s: %v, %v", text, time.Duration(d), err)
		}
		written, err := d.MarshalText()
		if err != nil || again.UnmarshalText(written) != nil || again != d {
			t.Errorf("%s written as %s reads as %v", text, written, time.Duration(again))
		}
	}
	for _, text := range []string{"d", "-1d", "1.5d", "7dd", "1d-2h", "70000d", "12h1d", "7", "65535d2562047h"} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q: read as %v", text, time.Duration(d))
		}
	}
}
