package admin

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/event"
)

func TestTrials(t *testing.T) {
	b := start(t)
	ask := func(query, mediaType, body string) got {
		return b.ask("POST", "/v1/plugins/accesslog/test"+query, body, "Content-Type", mediaType)
	}
	ask("?digest=aaaaaaaa&config=%7B%22a%22%3A1%7D", "application/x-ndjson; charset=utf-8", "{\"a\":1}\r\n\n  \n{\"b\":2}").expect(t, 200, `"digest":"sha256:aaaaaaaa11111111"`, `"kept":2`, `"events":[{"verdict":"kept"}]`)
	if o := b.tried; fmt.Sprintf("%s", o.Events) != `[{"a":1} {"b":2}]` || string(o.Config) != `{"a":1}` || o.Syntax != event.JSON {
		t.Errorf("%s", o.Events)
	}
	ask("", "text/plain", "a\nb\n").expect(t, 200, `"digest":"sha256:bbbbbbbb22222222"`)
	if o := b.tried; len(o.Events) != 2 || o.Syntax != event.Text || o.Config != nil {
		t.Errorf("%+v", o)
	}
	ask("", "application/octet-stream", "a\nb\n").expect(t, 200)
	if o := b.tried; len(o.Events) != 1 || string(o.Events[0]) != "a\nb\n" || o.Syntax != event.Opaque {
		t.Errorf("%+v", o)
	}
	ask("", "application/json", "{}").expect(t, 415, "application/x-ndjson")
	ask("?config={", "text/plain", "a").expect(t, 400, "bad_parameter")
	ask("?stream=s", "text/plain", "a").expect(t, 400, "bad_parameter")
	ask("?digest=dddddddd", "text/plain", "a").expect(t, 404, "unknown_plugin")
	ask("", "text/plain", strings.Repeat("a\n", MaxTried+1)).expect(t, 413, "too_many_events", `"limit":1000`, `"observed":1001`)
	ask("", "text/plain", strings.Repeat("a", trialBytes+1)).expect(t, 413)
	b.ask("POST", "/v1/plugins/none/test", "a", "Content-Type", "text/plain").expect(t, 404)
}
