package openapi

import (
	"encoding/json"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/problem"
)

func document(t *testing.T) (doc struct {
	Paths map[string]map[string]struct {
		Responses map[string]any
	}
	Codes map[string]code `json:"x-codes"`
}) {
	t.Helper()
	text, err := Document("1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	var loose struct {
		Paths map[string]map[string]json.RawMessage
		Codes map[string]code `json:"x-codes"`
	}
	if err := json.Unmarshal(text, &loose); err != nil {
		t.Fatal(err)
	}
	doc.Codes = loose.Codes
	doc.Paths = map[string]map[string]struct{ Responses map[string]any }{}
	for path, item := range loose.Paths {
		doc.Paths[path] = map[string]struct{ Responses map[string]any }{}
		for method, raw := range item {
			var op struct{ Responses map[string]any }
			if method == "parameters" {
				continue
			}
			if err := json.Unmarshal(raw, &op); err != nil {
				t.Fatal(err)
			}
			doc.Paths[path][method] = op
		}
	}
	return doc
}

// A05: each code that can be answered is described, and no other.
func TestA05EveryCodeIsDescribed(t *testing.T) {
	codes := document(t).Codes
	for word, kind := range problem.Codes() {
		if c := codes[string(word)]; c.Means == "" || c.Status != kind.Status || c.Retryable != kind.Retryable {
			t.Errorf("%s is described as %+v, and is %+v", word, c, kind)
		}
	}
	var raw struct {
		Codes map[event.Code]string `yaml:"x-codes"`
	}
	if err := yaml.Unmarshal(source, &raw); err != nil {
		t.Fatal(err)
	}
	for word := range raw.Codes {
		if _, ok := problem.Of(word); !ok {
			t.Errorf("%s is described and does not exist", word)
		}
	}
}

// Statuses of codes that only the admin API answers.
var adminOnly = map[int]bool{412: true, 501: true}

func TestSendingDescribesEachStatus(t *testing.T) {
	responses := document(t).Paths["/v1/streams/{stream}/events"]["post"].Responses
	for word, kind := range problem.Codes() {
		status, _ := json.Marshal(kind.Status)
		if _, ok := responses[string(status)]; !ok && !adminOnly[kind.Status] {
			t.Errorf("%s answers %d, which sending events does not describe", word, kind.Status)
		}
	}
}
