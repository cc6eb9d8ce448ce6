package gateway

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/headgate-io/headgate/gateway/config"
)

// apiDescription is what a running gateway says of itself, to check its answers against.
type apiDescription struct {
	t        *testing.T
	doc      any
	compiler *jsonschema.Compiler
	covered  map[string]bool // operations with an answer that was checked
}

func describe(t *testing.T, in *instance) *apiDescription {
	t.Helper()
	resp, err := http.Get(fmt.Sprintf("http://%s/openapi.json", in.addresses.admin))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	doc, err := jsonschema.UnmarshalJSON(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	d := &apiDescription{t: t, doc: doc, compiler: jsonschema.NewCompiler(), covered: map[string]bool{}}
	d.compiler.AssertFormat()
	if err := d.compiler.AddResource("api.json", doc); err != nil {
		t.Fatal(err)
	}
	return d
}

// at follows a path of member names, and references on the way. It returns the place that it ends at, as a JSON pointer.
func (d *apiDescription) at(names ...string) (value map[string]any, pointer string, ok bool) {
	value, ok = d.doc.(map[string]any)
	for _, name := range names {
		if !ok {
			return nil, "", false
		}
		value, ok = value[name].(map[string]any)
		pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		if ref, is := value["$ref"].(string); ok && is {
			value, pointer, ok = d.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
		}
	}
	return value, pointer, ok
}

// check fails unless the operation describes an answer with this status, media type and body.
func (d *apiDescription) check(method, path string, resp *http.Response, body []byte) {
	d.t.Helper()
	what := fmt.Sprintf("%s %s: %d", method, path, resp.StatusCode)
	d.covered[strings.ToLower(method)+" "+path] = true
	operation := []string{"paths", path, strings.ToLower(method), "responses"}
	answer, _, ok := d.at(append(operation, fmt.Sprint(resp.StatusCode))...)
	status := fmt.Sprint(resp.StatusCode)
	if !ok {
		status = fmt.Sprintf("%dXX", resp.StatusCode/100)
		answer, _, ok = d.at(append(operation, status)...)
	}
	if !ok {
		d.t.Errorf("%s is not described: %s", what, body)
		return
	}
	d.checkHeaders(what, answer, resp)
	if _, has := answer["content"]; !has {
		if len(body) > 0 {
			d.t.Errorf("%s has a body: %s", what, body)
		}
		return
	}
	mediaType, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	_, pointer, ok := d.at(append(operation, status, "content", mediaType, "schema")...)
	if !ok {
		d.t.Errorf("%s is described without %s", what, mediaType)
		return
	}
	for _, doc := range documents(mediaType, body) {
		d.valid(what, pointer, doc)
	}
}

// checkHeaders fails when an answer has a header of which a client can make something, and that is not described.
func (d *apiDescription) checkHeaders(what string, answer map[string]any, resp *http.Response) {
	d.t.Helper()
	described, _ := answer["headers"].(map[string]any)
	for name := range resp.Header {
		telling := strings.HasPrefix(name, "Headgate-") || strings.HasPrefix(name, "Accept") || strings.HasPrefix(name, "Idempotency-")
		switch name {
		case "Allow", "Retry-After", "X-Request-Id", "Etag", "Location", "Www-Authenticate":
			telling = true
		}
		found := false
		for known := range described {
			found = found || http.CanonicalHeaderKey(known) == name
		}
		if telling && !found {
			d.t.Errorf("%s has a header that is not described: %s: %s", what, name, resp.Header.Get(name))
		}
	}
}

// documents are the JSON documents of a body.
func documents(mediaType string, body []byte) [][]byte {
	switch mediaType {
	case "application/x-ndjson":
		if len(body) == 0 {
			return nil
		}
		return bytes.Split(bytes.TrimSpace(body), []byte("\n"))
	case "application/json", "application/problem+json":
		return [][]byte{body}
	}
	return nil
}

func (d *apiDescription) valid(what, pointer string, text []byte) {
	d.t.Helper()
	schema, err := d.compiler.Compile("api.json#" + pointer)
	if err != nil {
		d.t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		err = schema.Validate(doc)
	}
	if err != nil {
		d.t.Errorf("%s is not as described: %v\n%s", what, err, text)
	}
}

// call is a request: METHOD, the path as the description has it, a body, its type, and further fields as NAME: VALUE.
type call struct {
	request string
	body    string
	fields  []string
	status  int
}

// TestAnswersAreAsDescribed makes each call with its good answer and with bad ones.
func TestAnswersAreAsDescribed(t *testing.T) {
	module, err := os.ReadFile(filepath.Join("..", "examples", "plugins", "accesslog-c", "accesslog.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	cfg := zero(t)
	cfg.Streams = map[string]config.Stream{"slow": {Key: config.Key{JSON: "/k"}, Rate: config.StreamRate{Key: few(2)}}}
	cfg.AutoCreate = new(bool)
	*cfg.AutoCreate = true
	in := start(t, cfg)
	defer in.end()
	d := describe(t, in)
	jsonType, lines := "Content-Type: application/json", "Content-Type: application/x-ndjson"
	const events = "POST /v1/streams/web/events"
	for _, c := range []call{
		{events, `{"remote_ip":"a","response":200}`, []string{lines}, 200},
		{events + "?ack=accepted", `{"remote_ip":"a"}`, []string{lines}, 202},
		{events, "{\"a\":1}\n{bad\n", []string{lines}, 207},
		{events, "{bad\n", []string{lines}, 400},
		{events, "[", []string{jsonType}, 400},
		{events + "?dry_run=true", "{\"a\":1}\n{bad\n", []string{lines, "Headgate-Key: k"}, 200},
		{events + "?nope=1", `{}`, []string{jsonType}, 400},
		{events, `{"a":1}`, []string{lines, "Idempotency-Key: k"}, 200},
		{events, `{"a":1}`, []string{lines, "Idempotency-Key: k"}, 200},
		{events, `{"a":2}`, []string{lines, "Idempotency-Key: k"}, 422},
		{events + "?ack=accepted", `{"a":1}`, []string{lines, "Idempotency-Key: l"}, 202},
		{events, "{\"a\":1}\n{bad\n", []string{lines, "Idempotency-Key: m"}, 207},
		{events, "{bad\n", []string{lines, "Idempotency-Key: n"}, 400},
		{events + "?mode=strict", "{\"a\":1}\n{bad\n", []string{lines, "Idempotency-Key: o"}, 422},
		{events, `"` + strings.Repeat("x", 1<<20) + `"`, []string{jsonType, "Idempotency-Key: p"}, 413},
		{"PUT /v1/streams/orders", "{}", []string{jsonType, "Content-Encoding: gzip"}, 415},
		{"POST /v1/streams/slow/events", "{\"k\":1}\n{\"k\":1}\n{\"k\":1}\n", []string{lines, "Idempotency-Key: q"}, 207},
		{"POST /v1/streams/slow/events", "{\"k\":1}", []string{lines, "Idempotency-Key: r"}, 429},
		{events, `{}`, nil, 415},
		{events, `{}`, []string{jsonType, "Content-Encoding: rot13"}, 415},
		{events, strings.Repeat("[", 70) + strings.Repeat("]", 70) + "\n", []string{lines}, 422},
		{"POST /v1/streams/Web!/events", `{}`, []string{jsonType}, 404},

		{"GET /v1/streams", "", nil, 200},
		{"GET /v1/streams/web", "", nil, 200},
		{"GET /v1/streams/none", "", nil, 404},
		{"PUT /v1/streams/orders", `{"key":{"json":"/id"},"codec":"s2"}`, []string{jsonType}, 201},
		{"PUT /v1/streams/orders", `{"key":"required","codec":"s2"}`, []string{jsonType}, 200},
		{"PUT /v1/streams/orders", `{"codec":"s2","filters":[{"drop":{"any":[{"json":"/a","in":[1,"x"]},{"not":{"ce":"type","eq":"t"}}]}},{"reject":{"header":"h","exists":false},"reason":"why"}]}`, []string{jsonType}, 200},
		{"PUT /v1/streams/orders", `{"codec":"s3"}`, []string{jsonType}, 400},
		{"PUT /v1/streams/orders", `{"partitions":7}`, []string{jsonType}, 409},
		{"PUT /v1/streams/orders", `{}`, []string{jsonType, `If-Match: "99"`}, 412},
		{"GET /v1/streams/web/table", "", nil, 200},
		{"GET /v1/streams/web/hotkeys", "", nil, 200},
		{"GET /v1/watch?follow=false&stream=web", "", nil, 200},
		{"GET /v1/watch?no=1", "", nil, 400},
		{"GET /v1/streams/web/explain?key=k", "", nil, 200},
		{"GET /v1/streams/web/explain", "", nil, 200},
		{"GET /v1/streams/web/explain?no=1", "", nil, 400},
		{"GET /v1/streams/web/events?from=start", "", nil, 200},
		{"GET /v1/streams/web/events?from=never", "", nil, 400},
		{"GET /v1/deadletter/web", "", nil, 200},
		{"GET /v1/deadletter/web/1", "", nil, 404},
		{"POST /v1/deadletter/web", `{"action":"replay","all":true}`, []string{jsonType}, 200},
		{"POST /v1/deadletter/web", `{"action":"purge","all":true,"dry_run":true}`, []string{jsonType}, 200},
		{"POST /v1/deadletter/web", `{"action":"drop"}`, []string{jsonType}, 400},
		{"POST /v1/streams/web/purge", `{"keep":1}`, []string{jsonType}, 200},
		{"POST /v1/streams/web/resume", "", nil, 200},
		{"POST /v1/streams/none/resume", "", nil, 404},
		{"POST /v1/streams/web/purge", `{}`, []string{jsonType}, 400},

		{"PUT /v1/plugins/accesslog", string(module), []string{"Content-Type: application/wasm"}, 201},
		{"PUT /v1/plugins/accesslog", string(module), []string{"Content-Type: application/wasm"}, 200},
		{"PUT /v1/plugins/bad", "no module", []string{"Content-Type: application/wasm"}, 422},
		{"GET /v1/plugins", "", nil, 200},
		{"GET /v1/plugins/accesslog", "", nil, 200},
		{"GET /v1/plugins/none", "", nil, 404},
		{"GET /v1/plugins/accesslog/logs?last=5", "", nil, 200},
		{"POST /v1/plugins/accesslog/test?config=%7B%22drop_status_from%22%3A500%7D", "{\"remote_ip\":\"a\"}\n{\"response\":500}\n{bad\n", []string{lines}, 200},
		{"POST /v1/plugins/accesslog/test", "{}", []string{jsonType}, 415},
		{"POST /v1/plugins/none/test", "{}", []string{lines}, 404},
		{"GET /v1/plugins/none/logs", "", nil, 404},
		{"POST /v1/streams/web/plugins", `{"plugin":"accesslog","on_error":"reject"}`, []string{jsonType}, 200},
		{"POST /v1/streams/web/plugins", `{"plugin":"none"}`, []string{jsonType}, 404},
		{"POST /v1/streams/web/plugins", `{"plugin":"accesslog","stage":"canary","percent":10,"on_suspend":"previous"}`, []string{jsonType}, 200},
		{"GET /v1/streams/web/plugins", "", nil, 200},
		{"GET /v1/plugins/accesslog", "", nil, 200},
		{"GET /v1/streams/web", "", nil, 200},
		{"POST /v1/streams/web/plugins/promote", `{"plugin":"accesslog"}`, []string{jsonType}, 200},
		{"POST /v1/streams/web/plugins/promote", `{"plugin":"accesslog"}`, []string{jsonType}, 409},
		{"POST /v1/streams/web/plugins/rollback", `{"plugin":"accesslog"}`, []string{jsonType}, 200},
		{"POST /v1/streams/web/plugins/rollback", `{"plugin":"none"}`, []string{jsonType}, 409},
		{"POST /v1/streams/web/plugins/resume", `{"plugin":"accesslog"}`, []string{jsonType}, 409},
		{"DELETE /v1/streams/web/plugins", "", nil, 200},
		{"POST /v1/streams/web/plugins", `{"name":"accesslog"}`, []string{jsonType}, 200},
		{"GET /v1/streams/web", "", nil, 200},
		{"DELETE /v1/plugins/accesslog", "", nil, 409},
		{"DELETE /v1/streams/web/plugins/accesslog?stage=shadow", "", nil, 404},
		{"DELETE /v1/streams/web/plugins/accesslog", "", nil, 200},
		{"GET /v1/plugins/accesslog/versions/00000000", "", nil, 404},
		{"DELETE /v1/plugins/accesslog/versions/00000000", "", nil, 404},
		{"DELETE /v1/plugins/accesslog", "", nil, 204},
		{"DELETE /v1/streams/orders", "", nil, 204},

		{"GET /livez", "", nil, 200},
		{"GET /readyz?verbose", "", nil, 200},
		{"GET /metrics", "", nil, 200},
		{"GET /version", "", nil, 200},
		{"GET /openapi.json", "", nil, 200},
	} {
		d.call(in, c)
	}
	d.otherMethod(in, in.addresses.http, "POST", "/v1/streams/{stream}/events")
	d.otherMethod(in, in.addresses.admin, "GET", "/v1/streams/{stream}")
	d.coversAll()
}

// otherMethod checks the answer to a method that a path has not, by what one that it has describes.
func (d *apiDescription) otherMethod(in *instance, at fmt.Stringer, known, path string) {
	d.t.Helper()
	resp, body := in.do("PATCH", fmt.Sprintf("http://%s%s", at, strings.ReplaceAll(path, "{stream}", "web")), "")
	if resp.StatusCode != 405 || resp.Header.Get("Allow") == "" {
		d.t.Errorf("%s: %d %v", path, resp.StatusCode, resp.Header)
	}
	d.check(known, path, resp, []byte(body))
}

// call makes a request and checks its answer.
func (d *apiDescription) call(in *instance, c call) {
	d.t.Helper()
	method, target, _ := strings.Cut(c.request, " ")
	at := in.addresses.admin
	if method == "POST" && strings.Contains(target, "/events") {
		at = in.addresses.http
	}
	resp, body := in.do(method, fmt.Sprintf("http://%s%s", at, target), c.body, c.fields...)
	if resp.StatusCode != c.status {
		d.t.Errorf("%s: %d %s, want %d", c.request, resp.StatusCode, body, c.status)
	}
	d.check(method, d.template(target), resp, []byte(body))
}

// template is the described path that a request's target has: the one with the fewest parameters.
func (d *apiDescription) template(target string) string {
	path, _, _ := strings.Cut(target, "?")
	parts := strings.Split(path, "/")
	paths, _, _ := d.at("paths")
	found := ""
	for template := range paths {
		names := strings.Split(template, "/")
		same := len(names) == len(parts)
		for i := 0; same && i < len(names); i++ {
			same = names[i] == parts[i] || strings.HasPrefix(names[i], "{")
		}
		if same && (found == "" || strings.Count(template, "{") < strings.Count(found, "{")) {
			found = template
		}
	}
	return cmp.Or(found, path)
}

// coversAll fails for an operation of which no answer was checked.
func (d *apiDescription) coversAll() {
	d.t.Helper()
	paths, _, _ := d.at("paths")
	for path := range paths {
		item, _, _ := d.at("paths", path)
		for method := range item {
			if method != "parameters" && !d.covered[method+" "+path] {
				d.t.Errorf("no answer to %s %s was checked", method, path)
			}
		}
	}
}

// G12, R05: the description states the limits, and all other defaults, as they are.
func TestG12DescribedDefaultsAreTrue(t *testing.T) {
	in := start(t, zero(t))
	defer in.end()
	d := describe(t, in)
	cfg := config.Stream{}.WithDefaults()
	defaults, err := jsonschema.UnmarshalJSON(bytes.NewReader(cfg.Document())) // keeps numbers as they are written
	if err != nil {
		t.Fatal(err)
	}
	is := defaults.(map[string]any)
	schema, _, _ := d.at("components", "schemas", "Stream")
	said := map[string]any{}
	defaultsOf(schema, said)
	is["key"] = nil // there is none
	for name, value := range is {
		if got, want := fmt.Sprint(said[name]), fmt.Sprint(value); got != want {
			t.Errorf("default of %s: described as %s, is %s", name, got, want)
		}
	}
	limits, _ := said["limits"].(map[string]any)
	for _, name := range []string{"depth", "event", "events", "body", "inflated"} {
		if limits[name] == nil {
			t.Errorf("limits.%s is not described", name)
		}
	}
}

// defaultsOf collects the defaults of an object's members.
func defaultsOf(schema map[string]any, into map[string]any) {
	members, _ := schema["properties"].(map[string]any)
	for name, s := range members {
		member, _ := s.(map[string]any)
		if v, ok := member["default"]; ok {
			into[name] = v
		} else if _, nested := member["properties"]; nested {
			inner := map[string]any{}
			defaultsOf(member, inner)
			into[name] = inner
		}
	}
}
