package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestPluginTestRunsTheExample(t *testing.T) {
	b, err := product()
	if err != nil {
		t.Fatal(err)
	}
	events := temporary(t, "e.ndjson", `{"remote_ip":"a","response":200}
{"remote_ip":"b","response":500}

{"remote_ip":"c","response":404}
{broken
`)
	line := []string{"plugin", "test", b.accesslog, "--events", events, "--config", `{"drop_status_from":500}`}
	r := command(t, "", line...).expect(t, 0)
	want := "1\tkept\tkey \"a\"\n2\tfiltered\n3\tkept\tkey \"c\"\n4\trejected\tmalformed_json: "
	if !strings.HasPrefix(r.out, want) || !strings.Contains(r.out, "4 events: 2 kept, 1 filtered, 1 rejected; what an event costs shows with 1256 events") {
		t.Errorf("%s", r.out)
	}
	r = command(t, "", append(line, "-o", "json")...).expect(t, 0)
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	var total trialSummary
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &total); err != nil {
		t.Fatal(err)
	}
	if len(lines) != 5 || lines[0] != `{"event":1,"verdict":"kept","key":"a"}` || total != (trialSummary{Events: 4, Kept: 2, Filtered: 1, Rejected: 1}) {
		t.Errorf("%s", r.out)
	}
}

func TestPluginTestNamesWhatIsWrongWithAModule(t *testing.T) {
	command(t, "{}\n", "plugin", "test", temporary(t, "p.wasm", "no module"), "--events", "-").expect(t, 1, "the module is refused: E_")
}
