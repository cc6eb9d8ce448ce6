package admin

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestUpload(t *testing.T) {
	wasm := []string{"Content-Type", "application/wasm"}
	b := start(t, func(c *Config) { c.UploadBytes = 100 })
	g := b.ask("PUT", "/v1/plugins/fresh", "module", wasm...).expect(t, 201, `"digest":"sha256:cccccccc33333333"`, `"size":6`)
	if l := g.header.Get("Location"); l != "/v1/plugins/fresh/versions/sha256:cccccccc33333333" {
		t.Errorf("Location %s", l)
	}
	b.ask("PUT", "/v1/plugins/fresh", "module", wasm...).expect(t, 200)
	b.ask("PUT", "/v1/plugins/fresh", "module").expect(t, 415, "application/wasm")
	b.ask("PUT", "/v1/plugins/fresh", strings.Repeat("x", 101), wasm...).expect(t, 413, `"limit":100`, `"observed":101`)
	for _, name := range []string{"Fresh", "-a", "a.b", "a%2Fb", strings.Repeat("a", 64)} {
		b.ask("PUT", "/v1/plugins/"+name, "module", wasm...).expect(t, 400, "bad_parameter")
	}
}

func TestUploadWithASignature(t *testing.T) {
	b := start(t)
	upload := func(headers ...string) got {
		return b.ask("PUT", "/v1/plugins/fresh", "module", append([]string{"Content-Type", "application/wasm"}, headers...)...)
	}
	upload("Headgate-Signature", "bGluZSAxCmxpbmUgMgo=").expect(t, 201)
	if b.signature != "line 1\nline 2\n" {
		t.Errorf("%q", b.signature)
	}
	upload().expect(t, 200)
	if b.signature != "" {
		t.Errorf("%q", b.signature)
	}
	upload("Headgate-Signature", "untrusted comment: no base64").expect(t, 400, "bad_parameter", "base64 -w0")
}

// C07: nothing is inflated here. The bodies of C01 and C04 are refused by their header, or are modules like any other.
func TestC07CodedUploadsAreRefused(t *testing.T) {
	b := start(t, func(c *Config) { c.UploadBytes = 1 << 20 })
	bomb := "\x28\xb5\x2f\xfd\x00\x58" + strings.Repeat("\x02\x00\x10\x00", 1600) + "\x03\x00\x10\x00" // zstd, 200 MiB of zeros
	for coding, body := range map[string]string{"zstd": bomb, "gzip, zstd": bomb, "snappy": "\x80\x80\x80\x80\x04" + strings.Repeat("\x00", 15)} {
		g := b.ask("PUT", "/v1/plugins/fresh", body, "Content-Type", "application/wasm", "Content-Encoding", coding).
			expect(t, 415, "unsupported_coding", "without Content-Encoding")
		if accept := g.header.Get("Accept-Encoding"); accept != "identity" {
			t.Errorf("Accept-Encoding %q", accept)
		}
	}
	b.ask("GET", "/v1/plugins/fresh", "").expect(t, 404)
	b.ask("PUT", "/v1/plugins/fresh", bomb, "Content-Type", "application/wasm").expect(t, 201, `"size":6410`)
}

func TestUploadThatFailsItsChecks(t *testing.T) {
	b := start(t)
	b.verdict = []Check{{Check: "format", OK: true}, {Check: "exports", Code: "E_EXPORT", Detail: "no hg_process"},
		{Check: "imports", Code: "E_IMPORT", Detail: "env.open"}}
	g := b.ask("PUT", "/v1/plugins/fresh", "module", "Content-Type", "application/wasm").
		expect(t, 422, `"code":"plugin_refused"`, "exports, imports", `"retryable":false`)
	var doc struct{ Checks []Check }
	if err := json.Unmarshal([]byte(g.body), &doc); err != nil || len(doc.Checks) != 3 || doc.Checks[1] != b.verdict[1] {
		t.Errorf("%v %+v", err, doc)
	}
	b.ask("GET", "/v1/plugins/fresh", "").expect(t, 404)
}

func TestUploadsAtOnceAreBounded(t *testing.T) {
	b := start(t)
	b.inside, b.release = make(chan struct{}), make(chan struct{})
	answers := make(chan got, uploadsAtOnce)
	for range uploadsAtOnce {
		go func() { answers <- b.ask("PUT", "/v1/plugins/p", "m", "Content-Type", "application/wasm") }()
		<-b.inside
	}
	b.ask("PUT", "/v1/plugins/p", "m", "Content-Type", "application/wasm").expect(t, 503, "overloaded")
	close(b.release)
	for range uploadsAtOnce {
		if g := <-answers; g.status/100 != 2 {
			t.Errorf("%+v", g)
		}
	}
}

func TestPluginsListShowDelete(t *testing.T) {
	b := start(t)
	b.ask("GET", "/v1/plugins", "").expect(t, 200, `{"plugins":[{"name":"accesslog","versions":[{`, `"streams":["web"]`)
	b.ask("GET", "/v1/plugins/accesslog", "").expect(t, 200, "sha256:bbbbbbbb22222222", "sha256:aaaaaaaa11111111")
	b.ask("GET", "/v1/plugins/nope", "").expect(t, 404, "unknown_plugin")
	b.ask("GET", "/v1/plugins/accesslog/versions/sha256:aaaaaaaa11111111", "").expect(t, 200, `"size":1`)
	b.ask("GET", "/v1/plugins/accesslog/versions/AAAAAAAA", "").expect(t, 200, `"size":1`)
	b.ask("GET", "/v1/plugins/accesslog/versions/aaaa", "").expect(t, 400, "at least 8")
	b.ask("GET", "/v1/plugins/accesslog/versions/dddddddd", "").expect(t, 404, "unknown_plugin")
	b.ask("DELETE", "/v1/plugins/accesslog", "").expect(t, 409, "plugin_in_use")
	b.ask("DELETE", "/v1/plugins/accesslog/versions/dddddddd", "").expect(t, 404)
	b.ask("DELETE", "/v1/plugins/accesslog/versions/aaaaaaaa", "").expect(t, 204)
	b.ask("DELETE", "/v1/plugins/accesslog", "").expect(t, 404)
	b.ask("GET", "/v1/plugins", "").expect(t, 200, `{"plugins":[]}`)
}

func TestPickVersion(t *testing.T) {
	p := Plugin{Name: "p", Versions: []Version{{Digest: "sha256:12345678aa"}, {Digest: "sha256:12345678bb"}}}
	for digest, want := range map[string]string{"": "sha256:12345678aa", "12345678b": "sha256:12345678bb", "12345678": "", "87654321": "", "1": ""} {
		if v, err := pickVersion(p, digest); v.Digest != want || (err == nil) != (want != "") {
			t.Errorf("%q: %s, %v", digest, v.Digest, err)
		}
	}
	if _, err := pickVersion(Plugin{Name: "p"}, ""); err == nil {
		t.Error("a version of none")
	}
}

func TestActivateAndDeactivate(t *testing.T) {
	b := start(t)
	js := []string{"Content-Type", "application/json"}
	b.ask("GET", "/v1/streams/web/plugins", "").expect(t, 200, `{"plugins":[],"stream":"web"}`)
	b.ask("POST", "/v1/streams/web/plugins", `{"plugin":"accesslog","config":{"a":1},"on_error":"default_key=x"}`, js...).
		expect(t, 200, `"digest":"sha256:bbbbbbbb22222222"`, `"config":{"a":1}`, `"on_error":"default_key=x"`, `"stage":"active"`)
	b.ask("POST", "/v1/streams/web/plugins", `{"plugin":"accesslog","digest":"aaaaaaaa"}`, js...).
		expect(t, 200, `"digest":"sha256:aaaaaaaa11111111"`)
	b.ask("GET", "/v1/streams/web/plugins", "").expect(t, 200, "sha256:bbbbbbbb22222222")
	for body, want := range map[string]string{
		`{"plugin":"nope"}`:                                     "unknown_plugin",
		`{"plugin":"accesslog","digest":"deadbeef"}`:            "unknown_plugin",
		`{"plugin":"accesslog","stage":"ghost"}`:                "bad_parameter",
		`{"plugin":"accesslog","stage":"canary"}`:               "1 to 100",
		`{"plugin":"accesslog","stage":"canary","percent":101}`: "1 to 100",
		`{"plugin":"accesslog","stage":"shadow","percent":1}`:   "percent is of a canary",
		`{"plugin":"accesslog","on_suspend":"never"}`:           "policy or previous",
		`{"plugin":"accesslog","name":"other"}`:                 "bad_parameter",
		`{"digest":"aaaaaaaa"}`:                                 `{\"plugin\": \"NAME\"}`,
		`{"plugin":"accesslog","percent":5}`:                    "percent",
		`{"plugin":"accesslog"} {}`:                             "trailing_data",
		`{`:                                                     "malformed_json",
	} {
		if g := b.ask("POST", "/v1/streams/web/plugins", body, js...); g.status/100 != 4 || !strings.Contains(g.body, want) {
			t.Errorf("%s: %d %s", body, g.status, g.body)
		}
	}
	b.ask("POST", "/v1/streams/web/plugins", `{"name":"accesslog"}`, js...).expect(t, 200, `{"plugins":[`)
	b.ask("POST", "/v1/streams/nostream/plugins", `{"plugin":"accesslog"}`, js...).expect(t, 200, `"created":true`)
	b.ask("DELETE", "/v1/streams/nostream/plugins", "").expect(t, 200, `"plugins":[]`)
	b.ask("DELETE", "/v1/streams/web/plugins/accesslog", "").expect(t, 200, `"stream":"web"`)
	b.ask("DELETE", "/v1/streams/web/plugins/nope", "").expect(t, 404, "unknown_plugin")
}

// What is done with a chain besides activating.
func TestRollbackPromoteAndResume(t *testing.T) {
	b := start(t)
	js := []string{"Content-Type", "application/json"}
	b.ask("POST", "/v1/streams/web/plugins", `{"plugin":"accesslog","stage":"canary","percent":10,"on_suspend":"previous","suspended":{"since":"2026-01-01T00:00:00Z","reason":"x"}}`, js...).
		expect(t, 200, `"stage":"canary","percent":10,"on_suspend":"previous"}`)
	for path, want := range map[string]Deed{"rollback": RollBack, "promote": Promote, "resume": Resume} {
		b.ask("POST", "/v1/streams/web/plugins/"+path, `{"plugin":"accesslog"}`, js...).expect(t, 200, `"stage":"canary"`)
		if b.change != (Change{Do: want, Plugin: "accesslog"}) {
			t.Errorf("%s: %+v", path, b.change)
		}
		b.ask("POST", "/v1/streams/web/plugins/"+path, `{}`, js...).expect(t, 400, "name the plugin")
		b.ask("POST", "/v1/streams/web/plugins/"+path, `{"plugin":"accesslog","digest":"x"}`, js...).expect(t, 400, "digest")
		b.ask("PUT", "/v1/plugins/"+path, "x", "Content-Type", "application/wasm").expect(t, 400, "bad_parameter")
	}
	b.ask("DELETE", "/v1/streams/web/plugins/accesslog?stage=canary", "").expect(t, 200)
	if b.change != (Change{Do: Deactivate, Plugin: "accesslog", Stage: "canary"}) {
		t.Errorf("%+v", b.change)
	}
}
