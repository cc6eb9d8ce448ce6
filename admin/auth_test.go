package admin

import (
	"testing"

	"github.com/headgate-io/headgate/event"
)

// asked permits everything to the token ok, and notes what was asked.
type asked struct{ action, stream string }

func (a *asked) Permit(authorization, action, stream string) error {
	*a = asked{action, stream}
	if authorization != "Bearer ok" {
		return event.Problemf(event.Unauthorized, "no")
	}
	return nil
}

func TestCallsNeedPermission(t *testing.T) {
	var last asked
	b := startAs(t, &last)
	for _, c := range []struct{ method, path, action, stream string }{
		{"GET", "/version", "read", ""},
		{"GET", "/v1/streams", "read", ""},
		{"GET", "/v1/streams/web", "read", "web"},
		{"HEAD", "/v1/streams/web/table", "read", "web"},
		{"GET", "/v1/streams/web/events?limit=1", "read", "web"},
		{"GET", "/v1/streams/web/plugins", "read", "web"},
		{"GET", "/v1/deadletter/web", "read", "web"},
		{"GET", "/v1/plugins", "read", ""},
		{"GET", "/v1/plugins/accesslog", "read", ""},
		{"PUT", "/v1/streams/web", "admin", "web"},
		{"DELETE", "/v1/streams/web", "admin", "web"},
		{"POST", "/v1/streams/web/purge", "admin", "web"},
		{"POST", "/v1/streams/web/plugins", "admin", "web"},
		{"DELETE", "/v1/streams/web/plugins/accesslog", "admin", "web"},
		{"PUT", "/v1/plugins/accesslog", "admin", ""},
		{"DELETE", "/v1/plugins/accesslog", "admin", ""},
		{"DELETE", "/v1/plugins/accesslog/versions/aaaaaaaa", "admin", ""},
		{"GET", "/no/such/call", "read", ""},
		{"PATCH", "/v1/streams/web%2Fother", "admin", "web/other"},
	} {
		last = asked{}
		for _, headers := range [][]string{nil, {"Authorization", "Bearer bad"}} {
			g := b.ask(c.method, c.path, "{}", headers...)
			if g.status != 401 || g.header.Get("WWW-Authenticate") != `Bearer realm="headgate"` || last != (asked{c.action, c.stream}) {
				t.Errorf("%s %s %v: %d %v, asked for %+v", c.method, c.path, headers, g.status, g.header, last)
			}
		}
	}
	if len(b.streams) != 2 || len(b.plugins) != 1 {
		t.Error("something was changed without permission")
	}
	b.ask("GET", "/v1/streams/web", "", "Authorization", "Bearer ok").expect(t, 200, `"name":"web"`)
	b.ask("GET", "/no/such/call", "", "Authorization", "Bearer ok").expect(t, 404)
}

func TestProbesNeedNoPermission(t *testing.T) {
	b := startAs(t, new(asked))
	for _, path := range []string{"/livez", "/readyz", "/readyz?verbose", "/metrics"} {
		b.ask("GET", path, "").expect(t, 200)
	}
}
