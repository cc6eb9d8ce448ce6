package admin

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestStreamsListAndShow(t *testing.T) {
	b := start(t)
	b.ask("GET", "/v1/streams", "").expect(t, 200,
		`{"streams":[{"name":"fixed","revision":1,"managed":"file"},{"name":"web","revision":7,"managed":"api","codec":"zstd"}]}`)
	g := b.ask("GET", "/v1/streams/web", "").expect(t, 200, `"revision":7`)
	if g.header.Get("ETag") != `"7"` {
		t.Errorf("ETag %s", g.header.Get("ETag"))
	}
	b.ask("GET", "/v1/streams/nope", "").expect(t, 404, "unknown_stream")
	clear(b.streams)
	b.ask("GET", "/v1/streams", "").expect(t, 200, `{"streams":[]}`)
}

func TestSetStreamConditions(t *testing.T) {
	for _, c := range []struct {
		name, stream string
		headers      []string
		status       int
		part         string
	}{
		{"plain", "web", nil, 200, `"revision":8`},
		{"new", "fresh", nil, 201, `"revision":1`},
		{"fits", "web", []string{"If-Match", `"7"`}, 200, `"revision":8`},
		{"changed meanwhile", "web", []string{"If-Match", `"6"`}, 412, "revision 7 by now"},
		{"any", "web", []string{"If-Match", `*`}, 200, ""},
		{"any, missing", "fresh", []string{"If-Match", `*`}, 412, "etag_mismatch"},
		{"revision, missing", "fresh", []string{"If-Match", `"1"`}, 412, "etag_mismatch"},
		{"only new", "fresh", []string{"If-None-Match", `*`}, 201, ""},
		{"only new, there", "web", []string{"If-None-Match", `*`}, 412, "exists already"},
		{"foreign tag", "web", []string{"If-Match", `"abc"`}, 412, "no ETag of ours"},
		{"no tag", "web", []string{"If-Match", `7`}, 400, "bad_parameter"},
		{"other condition", "web", []string{"If-None-Match", `"7"`}, 400, "bad_parameter"},
		{"file", "fixed", nil, 409, "managed_by_file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := start(t)
			g := b.ask("PUT", "/v1/streams/"+c.stream, `{"codec":"s2"}`, append(c.headers, "Content-Type", "application/json")...)
			g.expect(t, c.status, c.part)
			if c.status < 300 && (g.header.Get("ETag") == "" || !strings.Contains(g.body, `"codec":"s2"`)) {
				t.Errorf("%v %s", g.header, g.body)
			}
		})
	}
}

func TestSetStreamTakesBackWhatItShowed(t *testing.T) {
	b := start(t)
	shown := b.ask("GET", "/v1/streams/web", "").body
	b.ask("PUT", "/v1/streams/web", shown, "Content-Type", "application/json").expect(t, 200, `"revision":8`)
	if doc := string(b.streams["web"].Document); doc != `{"codec":"zstd"}` {
		t.Errorf("the gateway was given %s", doc)
	}
	b.ask("PUT", "/v1/streams/other", shown, "Content-Type", "application/json").expect(t, 400, "another stream")
}

func TestSetStreamRefusesBadBodies(t *testing.T) {
	b := start(t)
	for _, body := range []string{"", "[]", "null", "7", `{"a":`, `{} {}`} {
		b.ask("PUT", "/v1/streams/web", body, "Content-Type", "application/json").expect(t, 400, "malformed_json")
	}
	b.ask("PUT", "/v1/streams/web", "{}").expect(t, 415, "application/json")
	b.ask("PUT", "/v1/streams/web", "{}", "Content-Type", "application/json", "Content-Encoding", "gzip").expect(t, 415, "unsupported_coding")
	b.ask("PUT", "/v1/streams/web", strings.Repeat(" ", documentBytes+1), "Content-Type", "application/json").
		expect(t, 413, `"scope":"body"`, `"limit":1048576`, `"observed":1048577`)
}

func TestDeleteStream(t *testing.T) {
	b := start(t)
	b.ask("DELETE", "/v1/streams/web", "", "If-Match", `"6"`).expect(t, 412)
	b.ask("DELETE", "/v1/streams/web", "", "If-Match", "x").expect(t, 400)
	b.ask("DELETE", "/v1/streams/web", "", "If-Match", `"7"`).expect(t, 204)
	b.ask("DELETE", "/v1/streams/web", "").expect(t, 404)
}

func TestTable(t *testing.T) {
	b := start(t)
	b.ask("GET", "/v1/streams/web/table", "").expect(t, 200, `{"version":3,"partitions":[]}`)
	b.ask("GET", "/v1/streams/nope/table", "").expect(t, 404)
}

func TestDefinitionJSON(t *testing.T) {
	for doc, want := range map[string]string{
		`{}`:            `{"name":"s\"","revision":1,"managed":"api"}`,
		" { } ":         `{"name":"s\"","revision":1,"managed":"api"}`,
		`{"a":{"b":1}}`: `{"name":"s\"","revision":1,"managed":"api","a":{"b":1}}`,
	} {
		got, err := json.Marshal(Definition{Name: `s"`, Revision: 1, Managed: "api", Document: json.RawMessage(doc)})
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", doc, got, err)
		}
	}
	for _, doc := range []string{"", "[]", "{", `{"a"`} {
		if got, err := json.Marshal(Definition{Document: json.RawMessage(doc)}); err == nil {
			t.Errorf("%q: %s", doc, got)
		}
	}
}

func TestExplain(t *testing.T) {
	b := start(t)
	b.ask("GET", "/v1/streams/web/explain?key=a%20b&source=s", "").expect(t, 200, `{"key":"a b","source":"s"}`)
	b.ask("GET", "/v1/streams/web/explain?key=", "").expect(t, 200, `{"key":"","source":""}`) // an empty key is a key
	b.ask("GET", "/v1/streams/web/explain", "").expect(t, 200, `{"key":null}`)
	b.ask("GET", "/v1/streams/web/explain?key=a&key=b", "").expect(t, 400)
	b.ask("GET", "/v1/streams/web/explain?kay=a", "").expect(t, 400)
	b.ask("GET", "/v1/streams/nope/explain?key=a", "").expect(t, 404)
}

func TestHotKeysAndWatch(t *testing.T) {
	b := start(t)
	b.ask("GET", "/v1/streams/web/hotkeys", "").expect(t, 200, `{"keys":[]}`)
	b.ask("GET", "/v1/streams/nope/hotkeys", "").expect(t, 404)
	a := b.ask("GET", "/v1/watch?stream=web&follow=false", "").expect(t, 200, "event: split\ndata: {\"n\":1}\n\n")
	if got := a.header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("type %q", got)
	}
	b.ask("GET", "/v1/watch?stream=nope", "").expect(t, 404)
	b.ask("GET", "/v1/watch?follow=maybe", "").expect(t, 400)
}
