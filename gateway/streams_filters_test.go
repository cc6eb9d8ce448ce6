package gateway

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/gateway/config"
)

const filtersOfWeb = `
streams:
  web:
    key: {json: /user}
    filters:
      - drop: {json: /level, eq: debug}
      - name: who
        reject: {json: /user, exists: false}
        reason: say who you are
      - keep: {any: [{header: X-Tenant, in: [a, b]}, {ce: type, prefix: com.}]}
`

func (in *instance) scrape() string {
	_, doc := in.call("GET", fmt.Sprintf("http://%s/metrics", in.addresses.admin), "", "")
	return doc
}

// From the file to the answer: events are counted, named and explained, and a change is in force at once.
func TestFiltersOfADefinition(t *testing.T) {
	file := filepath.Join(t.TempDir(), "headgate.yaml")
	if err := os.WriteFile(file, []byte(filtersOfWeb), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, _, err := config.Load(config.Sources{File: file})
	if err != nil {
		t.Fatal(err)
	}
	data := zero(t)
	cfg.Data, cfg.Backends = data.Data, data.Backends
	in := start(t, cfg)
	defer in.end()
	send := func(body string, headers ...string) string {
		t.Helper()
		_, doc := in.do("POST", in.events("web"), body, append([]string{"Content-Type: application/x-ndjson"}, headers...)...)
		return doc
	}
	const body = `{"user":"ada","level":"debug"}` + "\n" + `{"level":"info"}` + "\n" + `{"user":"ada"}` + "\n"
	for headers, parts := range map[string][]string{
		"X-Tenant: a": {`"accepted":1,"filtered":1,"rejected":1`, `"code":"filter_rejected"`, `"detail":"say who you are (filter who)"`, `"index":1`},
		"X-Tenant: c": {`"accepted":0,"filtered":2,"rejected":1`},
	} {
		doc := send(body, headers)
		for _, part := range parts {
			if !strings.Contains(doc, part) {
				t.Errorf("%s: %s lacks %s", headers, doc, part)
			}
		}
	}
	_, doc := in.do("POST", in.events("web?dry_run=true"), body, "Content-Type: application/x-ndjson", "X-Tenant: c")
	for _, part := range []string{`"by":"filter 1"`, `"by":"filter who"`, `"by":"filter 3"`} {
		if !strings.Contains(doc, part) {
			t.Errorf("%s lacks %s", doc, part)
		}
	}
	cloud := func(kind string) (string, string) {
		_, binary := in.do("POST", in.events("web"), `{"user":"x"}`, "Content-Type: application/json", "ce-specversion: 1.0", "ce-id: b"+kind, "ce-source: s", "ce-type: "+kind)
		_, structured := in.do("POST", in.events("web"), `{"specversion":"1.0","id":"s`+kind+`","source":"s","type":"`+kind+`","user":"x","data":{}}`, "Content-Type: application/cloudevents+json")
		return binary, structured
	}
	for kind, part := range map[string]string{"com.example": `"accepted":1`, "org.example": `"filtered":1`} {
		if binary, structured := cloud(kind); !strings.Contains(binary, part) || !strings.Contains(structured, part) {
			t.Errorf("%s: %s, %s", kind, binary, structured)
		}
	}
	metrics := in.scrape()
	for _, line := range []string{`headgate_filter_events_total{filter="1",stream="web",verdict="filtered"} 2`, `headgate_filter_events_total{filter="who",stream="web",verdict="rejected"} 2`,
		`headgate_filter_events_total{filter="3",stream="web",verdict="filtered"} 3`} {
		if !strings.Contains(metrics, line) {
			t.Errorf("no %s in %s", line, metrics)
		}
	}
	if n := len(in.rows("web")); n != 3 {
		t.Errorf("%d events are stored", n)
	}
}

// A stream of the API gets other filters while it runs; they are stored, shown, and count on.
func TestFiltersAreChangedLive(t *testing.T) {
	cfg := zero(t)
	in := start(t, cfg)
	set := func(filters string) {
		t.Helper()
		if _, _, err := in.SetStream(t.Context(), "web", []byte(`{"filters":`+filters+`}`), admin.Match{}); err != nil {
			t.Fatal(err)
		}
	}
	set(`[{"name":"low","drop":{"json":"/n","lt":10}}]`)
	in.want(200, `"accepted":1,"filtered":1`, "web", "{\"n\":9}\n{\"n\":10}\n")
	set(`[{"name":"low","drop":{"json":"/n","lt":20}}]`)
	in.want(200, `"accepted":0,"filtered":2`, "web", "{\"n\":9}\n{\"n\":10}\n")
	if line := `headgate_filter_events_total{filter="low",stream="web",verdict="filtered"} 3`; !strings.Contains(in.scrape(), line) {
		t.Errorf("no %s", line)
	}
	in.end()
	in = start(t, cfg)
	defer in.end()
	d, err := in.Stream(t.Context(), "web")
	if err != nil || !strings.Contains(string(d.Document), `"filters":[{"name":"low","drop":{"json":"/n","lt":20}}]`) {
		t.Errorf("%s, %v", d.Document, err)
	}
	in.want(200, `"accepted":0,"filtered":1`, "web", `{"n":19}`)
	set(`[]`)
	in.want(200, `"accepted":1,"filtered":0`, "web", `{"n":19}`)
}

func TestFiltersOfTheConfigurationAreChecked(t *testing.T) {
	for filters, part := range map[string]string{
		"[{drop: {jsn: /a, eq: 1}}]":                 `streams.web.filters.0.drop.jsn: unknown setting; did you mean "json"?`,
		"[{drop: {json: /a, eq: 1}}, {kep: {}}]":     `streams.web.filters.1.kep: unknown setting; did you mean "keep"?`,
		"[{drop: {json: /a, equals: 1}}]":            "streams.web.filters.0.drop",
		"[{drop: {any: [{json: /a, prefix: 1}]}}]":   "streams.web.filters.0.drop.any.0.prefix",
		"[{drop: {not: {json: /a}}}]":                "streams.web.filters.0.drop.not: says nothing of the value",
		"[{drop: {header: 'a b', eq: 1}}]":           "streams.web.filters.0",
		"[{drop: {all: [{header: Cookie, eq: 1}]}}]": "credentials",
		"[{drop: {not: {ce: a-b, eq: 1}}}]":          "not a CloudEvents attribute",
		"{drop: {json: /a, eq: 1}}":                  "streams.web.filters: wants a list",
	} {
		_, _, err := config.Load(config.Sources{Set: []string{"streams.web.filters=" + filters}})
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", filters, err)
		}
	}
	pointers := []string{}
	for i := range 15 {
		pointers = append(pointers, fmt.Sprintf("{json: /p%d, eq: 1}", i))
	}
	_, _, err := config.Load(config.Sources{Set: []string{"streams.web.filters=[{drop: {any: [" + strings.Join(pointers, ", ") + "]}}]"}})
	if err == nil || !strings.Contains(err.Error(), "16 JSON pointers") {
		t.Errorf("%v", err)
	}
}
