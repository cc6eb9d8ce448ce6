package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestDeadLetterIsTailed: what a plugin fails on, and what a node refuses, can be read with its reason.
func TestDeadLetterIsTailed(t *testing.T) {
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil && bytes.Contains(body, []byte("poison")) {
			http.Error(w, "not this", http.StatusUnprocessableEntity)
		}
	}))
	defer node.Close()
	p := startGateway(t, t.TempDir(),
		"--set", fmt.Sprintf("backends={lake: {webhook: {nodes: [%s]}}}", node.URL),
		"--set", "streams={web: {backend: lake, codec: none, partitions: 1}}")
	p.headgate(0, "plugin", "push", "scripted", "../../plugins/testdata/scripted.wasm")
	p.headgate(0, "plugin", "activate", "--stream", "web", "--on-error", "deadletter", "scripted")
	// The guest does what an event's first byte says: 0 is kept, t traps.
	status, answer := p.post("web", "0\ntrue\n", "ack=delivered")
	if status != 200 || !strings.Contains(answer, `"accepted":1`) || !strings.Contains(answer, `"deadlettered":1`) {
		t.Errorf("%d %s", status, answer)
	}
	p.headgate(0, "plugin", "deactivate", "--stream", "web", "scripted")
	if status, answer = p.post("web", "1\n\"poison\"\n", "ack=delivered"); status != 200 || !strings.Contains(answer, `"deadlettered":1`) {
		t.Errorf("%d %s", status, answer)
	}
	out, _ := p.headgate(0, "tail", "--stream", "web.deadletter", "--from", "start", "-n", "2", "-o", "json")
	var got []string
	for line := range strings.Lines(out) {
		var r struct {
			Data       string
			Attributes map[string]string
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		got = append(got, r.Data+" "+r.Attributes["code"]+" "+r.Attributes["index"])
		if !strings.Contains(r.Attributes["reason"], "TRAP") && !strings.Contains(r.Attributes["reason"], "not this") {
			t.Errorf("reason %q", r.Attributes["reason"])
		}
	}
	if text := strings.Join(got, "\n"); text != "true plugin_failed 1\n\"poison\" backend_refused 1" {
		t.Errorf("the dead letter has\n%s", text)
	}
	if out, _ = p.headgate(0, "tail", "--stream", "web.deadletter", "--from", "start", "-n", "2"); out != "true\n\"poison\"\n" {
		t.Errorf("as data %q", out)
	}
	if code := p.terminate(); code != 0 {
		t.Errorf("exit %d\n%s", code, p.log)
	}
}
