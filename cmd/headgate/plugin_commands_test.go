package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

const versionDoc = `{"name":"p","digest":"sha256:0123456789abcdef","size":3,"abi":"hg/1","kind":"extractor+filter","languages":["Go"],"checks":[]}`

func TestPluginPush(t *testing.T) {
	s := scripted(t, reply{status: 201, body: versionDoc})
	file := temporary(t, "p.wasm", "abc")
	r := command(t, "", "plugin", "push", "p", file).expect(t, 0)
	if r.out != "p sha256:0123456789abcdef (3 bytes; extractor+filter, Go)\n" {
		t.Errorf("%q", r.out)
	}
	if q := s.requests[0]; q.method != "PUT" || q.path != "/v1/plugins/p" || q.body != "abc" || q.header.Get("Content-Type") != "application/wasm" {
		t.Errorf("%+v", q)
	}
	if r := command(t, "", "plugin", "push", "p", file, "-o", "json").expect(t, 0); !strings.Contains(r.out, `"kind": "extractor+filter"`) {
		t.Errorf("%q", r.out)
	}
}

// A compiler may take longer than what is on the way waits for an answer.
func TestPluginPushAsksAgainWhenTheAnswerIsLost(t *testing.T) {
	file := temporary(t, "p.wasm", "abc")
	s := scripted(t, reply{}, reply{status: 504, body: "<html>"}, refused(503, "overloaded"), reply{status: 200, body: versionDoc})
	r := command(t, "", "plugin", "push", "p", file).expect(t, 0, "asking again")
	if r.out != "p sha256:0123456789abcdef (3 bytes; extractor+filter, Go)\n" || len(s.sent()) != 4 || s.sent()[3].body != "abc" {
		t.Errorf("%q after %d requests", r.out, len(s.sent()))
	}
	scripted(t, reply{}, refused(422, "plugin_refused", `"checks":[{"check":"compile","ok":false,"code":"E_COMPILE_TIME","detail":"too long"}]`))
	command(t, "", "plugin", "push", "p", file).expect(t, 1, "E_COMPILE_TIME")
	s = scripted(t, reply{})
	command(t, "", "plugin", "push", "p", file).expect(t, 1, "no answer whether the version was stored (headgate plugin show p tells)")
	if len(s.sent()) != uploadRepeats+1 {
		t.Errorf("%d requests", len(s.sent()))
	}
}

func TestPluginPushWithASignature(t *testing.T) {
	s := scripted(t, reply{status: 201, body: versionDoc})
	file := temporary(t, "p.wasm", "abc")
	other := temporary(t, "q.minisig", "given")
	push := func(want string, args ...string) {
		t.Helper()
		s.requests = nil
		command(t, "", append([]string{"plugin", "push", "p", file}, args...)...).expect(t, 0)
		if got := s.requests[0].header.Get("Headgate-Signature"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	push("")
	push("Z2l2ZW4=", "--signature", other)
	if err := os.WriteFile(file+".minisig", []byte("beside"), 0o600); err != nil {
		t.Fatal(err)
	}
	push("YmVzaWRl")
	push("Z2l2ZW4=", "--signature", other)
	command(t, "", "plugin", "push", "p", file, "--signature", file+".gone").expect(t, 2)
}

func TestPluginPushNamesEachFailedCheck(t *testing.T) {
	scripted(t, refused(422, "plugin_refused", `"checks":[{"check":"format","ok":true},{"check":"exports","ok":false,"code":"E_EXPORT","detail":"no hg_process"}]`))
	r := command(t, "", "plugin", "push", "p", temporary(t, "p.wasm", "abc")).expect(t, 1, "exports: E_EXPORT: no hg_process\n", "plugin_refused: because")
	if strings.Contains(r.stderr, "format") {
		t.Errorf("names what passed: %s", r.stderr)
	}
}

func TestPluginListAndShow(t *testing.T) {
	s := scripted(t, reply{status: 200, body: `{"plugins":[{"name":"p","versions":[` + versionDoc + `],"streams":["app","web"],"uses":[{"stream":"app","stage":"active"},{"stream":"web","stage":"canary","percent":5}]},{"name":"none","versions":[]}]}`})
	r := command(t, "", "plugin", "list").expect(t, 0)
	if !strings.Contains(r.out, "0123456789ab") || !strings.Contains(r.out, "app, web (canary 5 %)") || strings.Contains(r.out, "none") {
		t.Errorf("%s", r.out)
	}
	if r := command(t, "", "plugin", "list", "-o", "json").expect(t, 0); !json.Valid([]byte(r.out)) {
		t.Errorf("%s", r.out)
	}
	s.answers = []reply{{status: 200, body: versionDoc}}
	command(t, "", "plugin", "show", "p").expect(t, 0)
	if r := command(t, "", "plugin", "show", "p", "--digest", "sha256:01234567").expect(t, 0); !strings.Contains(r.out, `"name": "p"`) {
		t.Errorf("%s", r.out)
	}
	for i, want := range []string{"/v1/plugins/p", "/v1/plugins/p/versions/sha256:01234567"} {
		if got := s.requests[2+i].path; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestPluginActivateAndDeactivate(t *testing.T) {
	s := scripted(t, reply{status: 200, body: `{"stream":"web","plugins":[{"plugin":"a","digest":"sha256:0123456789abcdef"},{"plugin":"b","digest":"sha256:f"}]}`})
	line := []string{"plugin", "activate", "--stream", "web", "a", "--digest", "01234567", "--on-error", "default_key=x", "--config"}
	r := command(t, "", append(line, `{"n":500}`)...).expect(t, 0)
	if r.out != "web: a@0123456789ab | b@f\n" {
		t.Errorf("%q", r.out)
	}
	command(t, "", append(line, "@"+temporary(t, "c.json", `{"n":500}`))...).expect(t, 0)
	want := `{"plugin":"a","digest":"01234567","config":{"n":500},"on_error":"default_key=x"}`
	for _, q := range s.requests {
		if q.method != "POST" || q.path != "/v1/streams/web/plugins" || q.body != want || q.header.Get("Content-Type") != "application/json" {
			t.Errorf("%+v", q)
		}
	}
	command(t, "", "plugin", "activate", "--stream", "web", "a").expect(t, 0)
	if got := s.requests[2].body; got != `{"plugin":"a"}` {
		t.Errorf("%s", got)
	}
	s.answers = []reply{{status: 200, body: `{"stream":"web","plugins":[]}`}}
	if r := command(t, "", "plugin", "deactivate", "--stream", "web", "a").expect(t, 0); r.out != "web: no plugins\n" {
		t.Errorf("%q", r.out)
	}
	if q := s.requests[3]; q.method != "DELETE" || q.path != "/v1/streams/web/plugins/a" {
		t.Errorf("%+v", q)
	}
}

func TestPluginStages(t *testing.T) {
	s := scripted(t, reply{status: 200, body: `{"stream":"web","plugins":[{"plugin":"a","digest":"sha256:01"},{"plugin":"a","digest":"sha256:02","stage":"canary","percent":10},{"plugin":"b","digest":"sha256:03","stage":"shadow"},{"plugin":"c","digest":"sha256:04","stage":"active","suspended":{"since":"2026-01-01T00:00:00Z","reason":"x"}}]}`})
	want := "web: a@01 | a@02 (canary 10 %) | b@03 (shadow) | c@04 (suspended)\n"
	for i, c := range []struct{ line, path, body string }{
		{"activate --stream web a --stage canary --percent 10 --on-suspend previous", "", `{"plugin":"a","stage":"canary","percent":10,"on_suspend":"previous"}`},
		{"rollback --stream web a", "/rollback", `{"plugin":"a"}`},
		{"promote --stream web a", "/promote", `{"plugin":"a"}`},
		{"resume --stream web a", "/resume", `{"plugin":"a"}`},
		{"deactivate --stream web a --stage canary", "/a?stage=canary", ""},
	} {
		r := command(t, "", append([]string{"plugin"}, strings.Fields(c.line)...)...).expect(t, 0)
		if r.out != want {
			t.Errorf("%s: %q", c.line, r.out)
		}
		if q := s.requests[i]; q.path != "/v1/streams/web/plugins"+c.path || q.body != c.body {
			t.Errorf("%s: %+v", c.line, q)
		}
	}
	command(t, "", "plugin", "rollback", "a").expect(t, 2, "--stream")
	command(t, "", "plugin", "promote", "--stream", "web").expect(t, 2)
}

func TestPluginActivateSaysThatItMadeTheStream(t *testing.T) {
	scripted(t, reply{status: 200, body: `{"stream":"wbe","created":true,"plugins":[{"plugin":"a","digest":"sha256:f"}]}`})
	r := command(t, "", "plugin", "activate", "--stream", "wbe", "a").expect(t, 0, "there was no stream wbe: it is made", "headgate stream delete wbe")
	if r.out != "wbe: a@f\n" {
		t.Errorf("%q", r.out)
	}
}

func TestPluginReset(t *testing.T) {
	s := scripted(t, reply{status: 200, body: `{"stream":"web","plugins":[]}`})
	command(t, "", "plugin", "reset", "--stream", "web").expect(t, 0)
	if q := s.requests[0]; q.method != "DELETE" || q.path != "/v1/streams/web/plugins" {
		t.Errorf("%+v", q)
	}
	command(t, "", "plugin", "reset").expect(t, 2, "--stream")
}

func TestPluginDelete(t *testing.T) {
	s := scripted(t, reply{status: 204})
	command(t, "", "plugin", "delete", "p").expect(t, 0)
	command(t, "", "plugin", "delete", "p", "--digest", "01234567").expect(t, 0)
	for i, want := range []string{"/v1/plugins/p", "/v1/plugins/p/versions/01234567"} {
		if q := s.requests[i]; q.method != "DELETE" || q.path != want {
			t.Errorf("%+v", q)
		}
	}
}

func TestPluginLogs(t *testing.T) {
	s := scripted(t, reply{status: 200, body: `{"number":7,"time":"2026-11-30T10:00:00Z","plugin":"p","version":"sha256:0123456789ab","level":"warn","from":"guest","message":"red \u001b[31m"}` + "\n"})
	r := command(t, "", "plugin", "logs", "p", "-n", "5", "--digest", "01234567").expect(t, 0)
	if !strings.HasSuffix(r.out, " warn  0123456789ab guest   red \uFFFD[31m\n") {
		t.Errorf("%q", r.out)
	}
	if q := s.requests[0]; q.method != "GET" || q.path != "/v1/plugins/p/logs?digest=01234567&follow=false&last=5" {
		t.Errorf("%+v", q)
	}
	if r := command(t, "", "plugin", "logs", "p", "-o", "json").expect(t, 0); !json.Valid([]byte(r.out)) || !strings.Contains(r.out, `"number":7`) {
		t.Errorf("%q", r.out)
	}
}

func TestPluginTestOnTheGateway(t *testing.T) {
	s := scripted(t, reply{status: 200, body: `{"plugin":"p","digest":"sha256:00","ns_per_event":100,"events":[{"verdict":"kept","key":"a"},{"verdict":"rejected","key":null,"code":"plugin_rejected","reason":7,"detail":"no"}]}`})
	file := temporary(t, "e.ndjson", "{\"u\":\"a\"}\n{\"u\":1}\n")
	expect := temporary(t, "x", `{"verdict":"kept","key":"a"}`+"\n"+`{"verdict":"rejected","reason":7}`+"\n")
	r := command(t, "", "plugin", "test", "--uploaded", "p", "--digest", "00000000", "--config", `{"a":1}`, "--events", file, "--expect", expect).expect(t, 0)
	if r.out != "1\tkept\tkey \"a\"\n2\trejected\tplugin_rejected: no\n2 events: 1 kept, 0 filtered, 1 rejected; 100 ns an event\nall as "+expect+" expects\n" {
		t.Errorf("%q", r.out)
	}
	if q := s.requests[0]; q.method != "POST" || q.path != "/v1/plugins/p/test?config=%7B%22a%22%3A1%7D&digest=00000000" || q.body != "{\"u\":\"a\"}\n{\"u\":1}\n" {
		t.Errorf("%+v", q)
	}
	command(t, "", "plugin", "test", "--uploaded", "p", "--events", file, "--expect", temporary(t, "x", "{\"verdict\":\"filtered\"}\n")).expect(t, exitFailed, "event 1: expected")
	command(t, "", "plugin", "test", "--uploaded", "p").expect(t, exitUsage, "give --events FILE")
}

func TestAPluginsConfigurationIsAnObject(t *testing.T) {
	file := temporary(t, "e.ndjson", "{}\n")
	for _, given := range []string{"[1]", "1", `"x"`, "null", "{"} {
		command(t, "", "plugin", "activate", "--stream", "web", "p", "--config", given).expect(t, exitUsage, "--config is no JSON object")
		command(t, "", "plugin", "test", "--uploaded", "p", "--events", file, "--config", given).expect(t, exitUsage, "--config is no JSON object")
	}
}
