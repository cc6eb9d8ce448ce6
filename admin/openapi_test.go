package admin

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// The description has each call there is and no other, but for sending events, which is on another listener.
func TestEveryCallIsDescribed(t *testing.T) {
	b := start(t)
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal([]byte(b.ask("GET", "/openapi.json", "").expect(t, 200, `"openapi":"3.1.0"`).body), &doc); err != nil {
		t.Fatal(err)
	}
	delete(doc.Paths["/v1/streams/{stream}/events"], "post")
	var described, there []string
	for path, item := range doc.Paths {
		for method := range item {
			if method != "parameters" {
				described = append(described, strings.ToUpper(method)+" "+path)
			}
		}
	}
	for path, m := range new(Server).calls() {
		for method := range maps.Keys(m) {
			there = append(there, method+" "+path)
		}
	}
	slices.Sort(described)
	slices.Sort(there)
	if !slices.Equal(described, there) {
		t.Errorf("described:\n%s\nthere:\n%s", strings.Join(described, "\n"), strings.Join(there, "\n"))
	}
}
