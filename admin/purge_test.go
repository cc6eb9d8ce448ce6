package admin

import "testing"

func TestPurge(t *testing.T) {
	b := start(t)
	ask := func(stream, body string) got {
		return b.ask("POST", "/v1/streams/"+stream+"/purge", body, "Content-Type", "application/json")
	}
	ask("web", `{"older_than":"7d"}`).expect(t, 200, `"purged_runs":3`)
	if b.order.OlderThan != "7d" || b.order.Keep != nil {
		t.Errorf("%+v", b.order)
	}
	ask("web", `{"keep":0}`).expect(t, 200, `"purged_runs":3`)
	if b.order.Keep == nil || *b.order.Keep != 0 {
		t.Errorf("%+v", b.order)
	}
	ask("web", `{}`).expect(t, 400, "bad_parameter")
	ask("web", `{"older_than":"7d","keep":1}`).expect(t, 400, "bad_parameter")
	ask("web", `{"keep":-1}`).expect(t, 400, "malformed_json")
	ask("web", `{"all":true}`).expect(t, 400, "malformed_json")
	ask("nope", `{"keep":1}`).expect(t, 404, "unknown_stream")
	b.ask("POST", "/v1/streams/web/purge", `{"keep":1}`).expect(t, 415, "unsupported_media_type")
	b.ask("GET", "/v1/streams/web/purge", "").expect(t, 405, "method_not_allowed")
}
