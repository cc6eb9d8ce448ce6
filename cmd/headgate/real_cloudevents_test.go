package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Cases R01, R06 with the real binary: the three modes in, events and attributes out.
func TestR06CloudEventsInAndOut(t *testing.T) {
	p := startGateway(t, t.TempDir())
	file := filepath.Join(t.TempDir(), "events.json")
	const one, two = `{ "specversion":"1.0","id":"1","source":"/s","type":"t","subject":"caf\u00e9","data":1.50 }`, `{"specversion":"1.0","id":"2","source":"/s","type":"t"}`
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("[" + one + ",\n" + two + "]\n")
	if out, _ := p.headgate(0, "send", "--stream", "web", "--type", "application/cloudevents-batch+json", file); !strings.Contains(out, `"sent":2,"accepted":2`) {
		t.Errorf("batch: %s", out)
	}
	write(strings.Replace(one, `"1"`, `"4"`, 1) + "\n" + `{"specversion":"1.0","id":"","source":"/s","type":"t"}`)
	if out, stderr := p.headgate(1, "send", "--stream", "web", "--type", "application/cloudevents+json", file); !strings.Contains(out, `"sent":2,"accepted":1,"filtered":0,"rejected":1`) ||
		!strings.Contains(stderr, `event 2: invalid_cloudevent: attribute "id" must not be empty`) {
		t.Errorf("structured: %s%s", out, stderr)
	}
	req, err := http.NewRequestWithContext(t.Context(), "POST", p.http+"/v1/streams/web/events", strings.NewReader("\xff\n"))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"ce-specversion": "1.0", "ce-id": "3", "ce-source": "/s", "ce-type": "t", "ce-subject": `"Euro%20%E2%82%AC"`, "ce-ext": "a%2520b"} {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("binary: %s", resp.Status)
	}

	out, _ := p.headgate(0, "tail", "--stream", "web", "--from", "start", "--wait", "1s", "-o", "json")
	var data []string
	for line := range strings.Lines(out) {
		var r struct {
			ID, Data   string
			DataBase64 []byte `json:"data_base64"`
			Attributes map[string]string
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		data = append(data, r.Data+string(r.DataBase64))
		mode := r.Attributes["content-type"]
		switch r.ID {
		case "1":
			if r.Attributes["subject"] != "café" || r.Data != one || mode != "application/cloudevents+json" {
				t.Errorf("%s", line)
			}
		case "2":
			if r.Data != two || len(r.Attributes) != 4 {
				t.Errorf("%s", line)
			}
		case "3":
			if at := r.Attributes; at["subject"] != "Euro €" || at["ext"] != "a%20b" || at["type"] != "t" || mode != "" || string(r.DataBase64) != "\xff\n" {
				t.Errorf("%s", line)
			}
		}
	}
	if len(data) != 4 {
		t.Errorf("%d events: %q", len(data), data)
	}
}
