package gateway

import (
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/settings"
)

// post sends a body with header fields, NAME: VALUE each, and returns status and answer.
func (in *instance) postWith(path, body string, fields ...string) (int, string) {
	in.t.Helper()
	resp, doc := in.do("POST", "http://"+in.addresses.http.String()+path, body, fields...)
	return resp.StatusCode, doc
}

// TestQ01ARefusedRequestMakesNoStream: neither one that counts towards the 32, nor a series.
func TestQ01ARefusedRequestMakesNoStream(t *testing.T) {
	in := start(t, zero(t))
	defer in.end()
	const ndjson = "Content-Type: application/x-ndjson"
	for name, c := range map[string]struct {
		status int
		body   string
		fields []string
	}{
		"media":    {415, "x", []string{"Content-Type: image/png"}},
		"coding":   {415, "{}\n", []string{ndjson, "Content-Encoding: rot13"}},
		"broken":   {400, "{\n", []string{ndjson}},
		"gzip":     {400, "{}\n", []string{ndjson, "Content-Encoding: gzip"}},
		"ack":      {400, "{}\n", []string{ndjson, "Headgate-Ack: maybe"}},
		"large":    {413, `"` + strings.Repeat("x", 2<<20) + `"` + "\n", []string{ndjson}},
		"too-much": {413, strings.Repeat("1\n", 9<<20), []string{ndjson}},
	} {
		if status, answer := in.postWith("/v1/streams/"+name+"/events", c.body, c.fields...); status != c.status {
			t.Errorf("%s: %d %s", name, status, answer)
		}
	}
	if n := in.streamCount(); n != 0 {
		t.Errorf("%d streams were made", n)
	}
	if status, answer := in.postWith("/v1/streams/fine/events", "{}\n", ndjson); status != 200 {
		t.Errorf("%d %s", status, answer)
	}
	families, err := in.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, f := range families {
		for _, m := range f.Metric {
			for _, l := range m.Label {
				if l.GetName() == "stream" {
					names[l.GetValue()] = true
				}
			}
		}
	}
	if len(names) != 2 || !names["fine"] || !names["other"] {
		t.Errorf("series of %v", names)
	}
}

// TestAStreamThatCannotBeMadeInTimeIsAnswered503: a change of plugins that compiles takes its time.
func TestAStreamThatCannotBeMadeInTimeIsAnswered503(t *testing.T) {
	cfg := zero(t)
	cfg.HTTP.RequestTimeout = settings.Duration(50 * time.Millisecond)
	in := start(t, cfg)
	defer in.end()
	in.steering.Lock()
	status, answer := in.postWith("/v1/streams/s/events", "{}\n", "Content-Type: application/x-ndjson")
	in.steering.Unlock()
	if status != 503 || !strings.Contains(answer, "overloaded") || !strings.Contains(answer, `"stored":"no"`) {
		t.Errorf("%d %s", status, answer)
	}
	if n := in.streamCount(); n != 0 {
		t.Errorf("%d streams were made", n)
	}
}

// TestAStreamThatIsDefinedMeanwhileTakesNothingReadForAnother: its key would not have been looked for.
func TestAStreamThatIsDefinedMeanwhileTakesNothingReadForAnother(t *testing.T) {
	in := start(t, zero(t))
	defer in.end()
	found, err := in.Open("s")
	if err != nil || !found.Settings().Unmade {
		t.Fatal(err)
	}
	if _, _, err := in.SetStream(t.Context(), "s", []byte(`{"key": {"json": "/k"}}`), admin.Match{}); err != nil {
		t.Fatal(err)
	}
	if err := found.Accept(t.Context(), &event.Batch{}); err == nil || !strings.Contains(err.Error(), "send it again") {
		t.Errorf("error %v", err)
	}
}
