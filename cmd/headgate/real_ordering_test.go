package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// --ordering goes with every request and session: the events have the place of a key with that order, which is another one than that
// of the key alone.
func TestSendAsksForAnOrder(t *testing.T) {
	p := startGateway(t, t.TempDir(), append([]string{"--set", "streams={web: {key: {json: /k}}}"}, onQUIC...)...)
	file := filepath.Join(t.TempDir(), "events.ndjson")
	if err := os.WriteFile(file, []byte("{\"k\":\"a\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	slot := func(args ...string) (at struct{ Slot int }) {
		out, _ := p.headgate(0, append([]string{"explain", "--stream", "web", "--key", "a", "-o", "json"}, args...)...)
		if err := json.Unmarshal([]byte(out), &at); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		return at
	}
	want := map[int]int{}
	for _, proto := range []string{"http", "h3", "quic"} {
		for ordering, at := range map[string]int{"": slot().Slot, "source": slot().Slot, "strict": slot("--ordering", "strict").Slot} {
			p.headgate(0, "send", "--proto", proto, "--quic-url", p.quicURL(), "--stream", "web", "--ordering", ordering, "--ack", "delivered", file)
			want[at]++
		}
		if _, errs := p.headgate(1, "send", "--proto", proto, "--quic-url", p.quicURL(), "--stream", "web", "--ordering", "none", file); !strings.Contains(errs, "looser_ordering") {
			t.Errorf("%s: %s", proto, errs)
		}
	}
	got := map[int]int{}
	for _, r := range p.tail("web") {
		got[*r.Slot]++
	}
	if !maps.Equal(got, want) {
		t.Errorf("slots %v, want %v", got, want)
	}
	if _, errs := p.headgate(2, "send", "--stream", "web", "--ordering", "total", file); !strings.Contains(errs, `strict, source or none, not "total"`) {
		t.Error(errs)
	}
}
