package admin

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
)

func TestLogs(t *testing.T) {
	b := start(t)
	const line = `{"number":1,"time":"1970-01-01T00:00:00Z","plugin":"p","version":"sha256:aaaa","level":"warn","from":"guest","message":"one\ntwo"}` + "\n"
	g := b.ask("GET", "/v1/plugins/p/logs?digest=sha256:AAAA&last=3&follow=false", "").expect(t, 200)
	if g.body != line || g.header.Get("Content-Type") != "application/x-ndjson" {
		t.Errorf("%+v", g)
	}
	if want := (LogQuery{Plugin: "p", Digest: "sha256:aaaa", Last: 3}); b.asked != want {
		t.Errorf("%+v", b.asked)
	}
	b.ask("GET", "/v1/plugins/nope/logs", "").expect(t, 404, "unknown_plugin")
	for _, query := range []string{"last=-1", "last=x", "follow=perhaps", "from=now", "follow=true&follow=true"} {
		b.ask("GET", "/v1/plugins/p/logs?"+query, "").expect(t, 400, "bad_parameter", "give digest=DIGEST")
	}
}

func TestLogsAreFollowedUntilTheStop(t *testing.T) {
	b := start(t)
	req, err := http.NewRequestWithContext(t.Context(), "GET", b.base+"/v1/plugins/p/logs?follow=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := b.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	if !lines.Scan() || !strings.Contains(lines.Text(), `"message":"one\ntwo"`) {
		t.Errorf("%q", lines.Text())
	}
	if err := b.server.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	if lines.Scan() || lines.Err() != nil {
		t.Errorf("%q, %v", lines.Text(), lines.Err())
	}
}
