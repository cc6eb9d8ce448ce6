package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sampleFile is the large real access log where it is present, else the small one of the demonstration.
func sampleFile(t *testing.T) string {
	t.Helper()
	for _, path := range []string{os.Getenv("HEADGATE_DATA"), filepath.Join("..", "..", "..", "shared", "data")} {
		file := filepath.Join(path, "access-log.ndjson")
		if _, err := os.Stat(file); path != "" && err == nil {
			return file
		}
	}
	return filepath.Join("..", "..", "examples", "demo", "access-log.ndjson")
}

// split returns the lines of a file that the example plugin keeps, and how many it drops at status 500.
func split(t *testing.T, file string) (kept []string, dropped int) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var e struct{ Response int }
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		if e.Response >= 500 {
			dropped++
			continue
		}
		kept = append(kept, strings.TrimSuffix(string(line), "\n"))
	}
	return kept, dropped
}

func TestMainJob(t *testing.T) {
	b, err := product()
	if err != nil {
		t.Fatal(err)
	}
	file := sampleFile(t)
	kept, dropped := split(t, file)
	data := t.TempDir()
	p := startGateway(t, data)
	p.headgate(0, "plugin", "push", "accesslog", b.accesslog)
	p.headgate(0, "plugin", "activate", "--stream", "web", "accesslog", "--config", `{"drop_status_from":500}`)

	out, _ := p.headgate(0, "send", "--stream", "web", file)
	var sum struct{ Sent, Accepted, Filtered, Rejected int }
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &sum); err != nil {
		t.Fatalf("summary %q: %v", out, err)
	}
	if sum.Sent != len(kept)+dropped || sum.Accepted != len(kept) || sum.Filtered != dropped || sum.Rejected != 0 {
		t.Errorf("summary %+v, want %d accepted and %d filtered", sum, len(kept), dropped)
	}
	rows := p.tail("web")
	checkMainJob(t, rows, kept)

	p.kill()
	p = startGateway(t, data)
	again := p.tail("web")
	checkMainJob(t, again, kept)
	if list, _ := p.headgate(0, "stream", "show", "web"); !strings.Contains(list, "accesslog") {
		t.Errorf("the plugin is not active after kill -9: %s", list)
	}
	if status, answer := p.post("web", `{"remote_ip":"192.0.2.1","response":503}`); status != 200 || !strings.Contains(answer, `"filtered":1`) {
		t.Errorf("the plugin does not filter after kill -9: %d %s", status, answer)
	}
	if code := p.terminate(); code != 0 {
		t.Errorf("SIGTERM: exit %d\n%s", code, p.log)
	}
}

// checkMainJob checks what was read back: the kept lines byte for byte, one slot a key, a key's events in
// their order, also when it went to another partition, numbers without gaps.
func checkMainJob(t *testing.T, rows []row, kept []string) {
	t.Helper()
	byKey, place := map[string][]string{}, map[string]int{}
	numbers := map[int][]uint64{}
	var got []string
	for _, r := range rows {
		if r.Key == nil || r.Slot == nil {
			t.Fatalf("no key or slot: %+v", r)
		}
		got = append(got, r.Data)
		byKey[*r.Key] = append(byKey[*r.Key], r.Data)
		if at, ok := place[*r.Key]; ok && at != *r.Slot {
			t.Errorf("key %s in slots %d and %d", *r.Key, at, *r.Slot)
		}
		place[*r.Key] = *r.Slot
		numbers[r.Partition] = append(numbers[r.Partition], r.Number)
	}
	want := map[string][]string{}
	for _, line := range kept {
		var e struct {
			IP string `json:"remote_ip"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		want[e.IP] = append(want[e.IP], line)
	}
	for key, lines := range want {
		if !slices.Equal(byKey[key], lines) {
			t.Errorf("key %s: %d events read back, %d sent, or not in their order", key, len(byKey[key]), len(lines))
		}
	}
	if slices.Sort(got); len(got) != len(kept) || !slices.Equal(got, slices.Sorted(slices.Values(kept))) {
		t.Errorf("read back %d events, kept %d, or other bytes", len(got), len(kept))
	}
	for partition, n := range numbers {
		for i, number := range n {
			if number != uint64(i+1) {
				t.Fatalf("partition %d: event %d has number %d", partition, i+1, number)
			}
		}
	}
	if len(numbers) < 2 {
		t.Errorf("everything in %d partition(s)", len(numbers))
	}
}
