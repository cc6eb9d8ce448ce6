package gateway

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
)

// Each example of the description that can be sent is taken.
func TestExamplesOfTheDescriptionAreTaken(t *testing.T) {
	in := start(t, zero(t))
	defer in.end()
	d := describe(t, in)
	content, _, _ := d.at("paths", "/v1/streams/{stream}/events", "post", "requestBody", "content")
	sent := 0
	for _, mediaType := range slices.Sorted(maps.Keys(content)) {
		example, ok := content[mediaType].(map[string]any)["example"]
		if !ok {
			continue
		}
		body, text := example.(string)
		if !text {
			body = marshaled(t, example)
		}
		if status, a := in.send("web/events", mediaType, body); status != 200 || a.Accepted == 0 {
			t.Errorf("%s %s: %d %+v", mediaType, body, status, a)
		}
		sent++
	}
	if sent < 4 {
		t.Errorf("only %d examples of events", sent)
	}
	for _, c := range []struct{ method, path, at string }{
		{"PUT", "/v1/streams/{stream}", "orders"}, {"POST", "/v1/streams/{stream}/purge", "web/purge"},
	} {
		media, _, ok := d.at("paths", c.path, map[string]string{"PUT": "put", "POST": "post"}[c.method], "requestBody", "content", "application/json")
		if !ok || media["example"] == nil {
			t.Errorf("%s %s has no example", c.method, c.path)
			continue
		}
		url := fmt.Sprintf("http://%s/v1/streams/%s", in.addresses.admin, c.at)
		if status, doc := in.call(c.method, url, "application/json", marshaled(t, media["example"])); status/100 != 2 {
			t.Errorf("%s %s: %d %s", c.method, c.path, status, doc)
		}
	}
}

func marshaled(t *testing.T, v any) string {
	doc, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(doc)
}
