package gateway

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/gateway/config"
)

// once sends a request with more headers, and returns its answer read.
func (in *instance) once(query, body string, header ...string) (*http.Response, string) {
	in.t.Helper()
	fields := []string{"Content-Type: application/x-ndjson"}
	for i := 0; i < len(header); i += 2 {
		fields = append(fields, header[i]+": "+header[i+1])
	}
	return in.do("POST", fmt.Sprintf("http://%s/v1/streams/%s", in.addresses.http, query), body, fields...)
}

// A07: the client closes its connection behind the last byte of the body, and sends the same again.
func TestA07EachEventIsStoredOnce(t *testing.T) {
	in := start(t, zero(t))
	defer in.end()
	var body strings.Builder
	for i := range 100 {
		fmt.Fprintf(&body, "{\"n\":%d}\n", i)
	}
	const target, key = "web/events", `"k1"`
	for range 5 {
		c, err := net.Dial("tcp", in.addresses.http.String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "POST /v1/streams/%s HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\nIdempotency-Key: %s\r\nContent-Length: %d\r\n\r\n%s",
			target, key, body.Len(), body.String())
		c.Close()
	}
	status := 409
	var doc string
	for status == 409 {
		var resp *http.Response
		resp, doc = in.once(target, body.String(), "Idempotency-Key", key)
		status = resp.StatusCode
	}
	if status != 200 || !strings.Contains(doc, `"accepted":100`) {
		t.Errorf("%d %s", status, doc)
	}
	resp, again := in.once(target, body.String(), "Idempotency-Key", key)
	if resp.Header.Get("Idempotency-Replayed") != "true" || again != doc {
		t.Errorf("%v %s, want %s", resp.Header, again, doc)
	}
	seen := map[string]int{}
	for _, r := range in.rows("web") {
		seen[string(r.Data)]++
	}
	if len(seen) != 100 {
		t.Errorf("%d events are stored, want 100", len(seen))
	}
	for data, n := range seen {
		if n != 1 {
			t.Errorf("%s is stored %d times", data, n)
		}
	}
}

// E01: an event without its key, beside one that has it, sent three times with the same idempotency key.
func TestE01PartialFailureSentAgain(t *testing.T) {
	cfg := zero(t)
	cfg.Streams = map[string]config.Stream{"s": {Key: config.Key{JSON: "/k", Required: true}}}
	in := start(t, cfg)
	defer in.end()
	const body = `[{"k":"x"},{"a":1}]`
	for range 3 {
		resp, doc := in.once("s/events?mode=strict", body, "Idempotency-Key", "a", "Content-Type", "application/json")
		if resp.StatusCode != 422 || !strings.Contains(doc, "strict_rejected") || !strings.Contains(doc, "key_required") || resp.Header.Get("Idempotency-Replayed") != "" {
			t.Errorf("(a) %d %s", resp.StatusCode, doc)
		}
	}
	if rows := in.rows("s"); len(rows) != 0 {
		t.Errorf("(a) stored %+v", rows)
	}
	for i := range 3 {
		resp, doc := in.once("s/events", body, "Idempotency-Key", "b", "Content-Type", "application/json")
		if resp.StatusCode != 207 || resp.Header.Get("Headgate-Rejected") != "1" || !strings.Contains(doc, `"accepted":1`) ||
			(resp.Header.Get("Idempotency-Replayed") != "") != (i > 0) {
			t.Errorf("(b) %d %v %s", resp.StatusCode, resp.Header, doc)
		}
	}
	if rows := in.rows("s"); len(rows) != 1 {
		t.Errorf("(b) stored %+v", rows)
	}
}

// F46: everything is sent twice, in other batches and with copies in one batch. Each id is stored once, and the ids are
// there when the events are read back.
func TestF46EverythingSentTwice(t *testing.T) {
	cfg := zero(t)
	cfg.Streams = map[string]config.Stream{
		"s": {ID: config.ID{JSON: "/id"}, Partitions: config.Partitions{Max: 4}},
		"h": {ID: config.ID{Header: "X-Delivery"}},
		"n": {},
	}
	in := start(t, cfg)
	defer in.end()
	line := func(i int) string { return fmt.Sprintf("{\"id\":%q,\"n\":%d}\n", fmt.Sprint("e-", i), i) }
	var one, two strings.Builder
	for i := range 60 {
		one.WriteString(line(i))
		two.WriteString(line(i + 30))
	}
	one.WriteString(line(0) + "{\"n\":-1}\n{\"id\":{},\"n\":0}\n")
	in.want(207, `"accepted":61,"filtered":0,"rejected":1,"duplicates":1,"deadlettered":0`, "s", one.String())
	in.want(200, `"accepted":30,"filtered":0,"rejected":0,"duplicates":30,"deadlettered":0`, "s", two.String())
	in.want(200, `"accepted":0,"filtered":0,"rejected":0,"duplicates":60,"deadlettered":0`, "s", two.String())
	ids := map[string]int{}
	for _, r := range in.rows("s") {
		if !strings.Contains(string(r.Data), string(r.ID)) {
			t.Errorf("%s has the id %s", r.Data, r.ID)
		}
		ids[string(r.ID)]++
	}
	if len(ids) != 91 || ids[""] != 1 {
		t.Errorf("%d ids, %d events without", len(ids), ids[""])
	}
	for id, n := range ids {
		if n != 1 {
			t.Errorf("%s is stored %d times", id, n)
		}
	}
	for i, want := range []string{`"accepted":2`, `"duplicates":2`, `"accepted":1`} {
		body, header := "{}\n{}\n", []string{"X-Delivery", "d1"}
		if i == 2 {
			header = append(header, "Headgate-Source", "another") // ids are those of a source
			body = "{}"
		}
		if resp, doc := in.once("h/events", body, header...); resp.StatusCode != 200 || !strings.Contains(doc, want) {
			t.Errorf("%d: %d %s, want %s", i, resp.StatusCode, doc, want)
		}
	}
	in.want(200, `"accepted":2`, "n", line(1)+line(1)) // no ids: no duplicates
	_, metrics := in.call("GET", "http://"+in.addresses.admin.String()+"/metrics", "", "")
	for _, want := range []string{`headgate_ids{state="remembered",stream="s"} 90`, `headgate_ids{state="pending",stream="s"} 0`,
		`headgate_ids_window_seconds{stream="h"}`, `headgate_ingest_events_total{result="duplicate",stream="s"} 91`, "headgate_idempotency_window_seconds"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s in the metrics", want)
		}
	}
	if strings.Contains(metrics, `headgate_ids{state="remembered",stream="n"}`) {
		t.Error("a stream without ids has metrics of them")
	}
}

// The definition of ids is changed while the stream runs.
func TestIDsAreSwitchedOnAndOff(t *testing.T) {
	in := start(t, zero(t))
	defer in.end()
	in.want(200, `"accepted":2`, "web", "{\"id\":1}\n{\"id\":1}\n")
	url := fmt.Sprintf("http://%s/v1/streams/web", in.addresses.admin)
	set := func(id string, want int) {
		t.Helper()
		if status, doc := in.call("PUT", url, "application/json", `{"id":`+id+`}`); status != want {
			t.Errorf("%s: %d %s", id, status, doc)
		}
	}
	set(`{"json":"/id","header":"x"}`, 400)
	set(`{"json":"/id","window":{"ids":10}}`, 400)
	set(`{"json":"/id","window":{"ids":200000,"age":"1h"}}`, 200)
	in.want(200, `"duplicates":1`, "web", "{\"id\":1}\n{\"id\":1}\n")
	set(`{}`, 200)
	in.want(200, `"accepted":2`, "web", "{\"id\":1}\n{\"id\":1}\n")
	if n := len(in.rows("web")); n != 5 {
		t.Errorf("%d events", n)
	}
}

// A CloudEvent is known by its source and id, without any setting and whoever sends it; unless the stream wants none of it.
func TestCloudEventsAreKnownByTheirIDs(t *testing.T) {
	cfg := zero(t)
	cfg.Streams = map[string]config.Stream{"s": {}, "ce": {ID: config.ID{CE: "id"}}, "none": {ID: config.ID{None: true}}}
	in := start(t, cfg)
	defer in.end()
	one := func(id, source string) string {
		return fmt.Sprintf(`{"specversion":"1.0","id":%q,"source":%q,"type":"t","data":1}`, id, source)
	}
	body := "[" + one("1", "/a") + "," + one("1", "/b") + "," + one("2", "/a") + "," + one("1", "/a") + "]"
	for i, want := range []string{`"accepted":3,"filtered":0,"rejected":0,"duplicates":1`, `"accepted":0,"filtered":0,"rejected":0,"duplicates":4`} {
		for _, stream := range []string{"s", "ce"} {
			resp, doc := in.once(stream+"/events", body, "Content-Type", "application/cloudevents-batch+json", "Headgate-Source", fmt.Sprint(i))
			if resp.StatusCode != 200 || !strings.Contains(doc, want) {
				t.Errorf("%s: %d %s", stream, resp.StatusCode, doc)
			}
		}
	}
	resp, doc := in.once("none/events", body, "Content-Type", "application/cloudevents-batch+json")
	if resp.StatusCode != 200 || !strings.Contains(doc, `"accepted":4`) {
		t.Errorf("%d %s", resp.StatusCode, doc)
	}
	resp, doc = in.once("s/events", "x", "Content-Type", "text/plain", "ce-specversion", "1.0", "ce-id", "2", "ce-source", "/a", "ce-type", "t")
	if resp.StatusCode != 200 || !strings.Contains(doc, `"duplicates":1`) {
		t.Errorf("binary: %d %s", resp.StatusCode, doc)
	}
}

// A dead letter takes what its stream sets aside, whatever the ids, and a mended event is no duplicate.
func TestDeadLettersTakePartInNoWindow(t *testing.T) {
	cfg := zero(t)
	cfg.Streams = map[string]config.Stream{"s": {ID: config.ID{Header: "X-Id"}}}
	in := start(t, cfg)
	defer in.end()
	in.scriptedPlugin("s", "script")
	for range 2 {
		resp, doc := in.once("s/events", "t1\n", "X-Id", "7", "Content-Type", "text/plain")
		if resp.StatusCode != 200 || !strings.Contains(doc, `"deadlettered":1`) {
			t.Errorf("%d %s", resp.StatusCode, doc)
		}
	}
	resp, doc := in.once("s/events", "01\n", "X-Id", "7", "Content-Type", "text/plain")
	if resp.StatusCode != 200 || !strings.Contains(doc, `"accepted":1`) {
		t.Errorf("%d %s", resp.StatusCode, doc)
	}
	letters := in.rows("s" + event.DeadLetterSuffix)
	if len(letters) != 2 || string(letters[0].ID) != "7" {
		t.Errorf("%+v", letters)
	}
}

// A01: the plugin drops the only event, rejects it, traps on it.
func TestA01DroppedRejectedAndFailedEvents(t *testing.T) {
	in := start(t, zero(t))
	defer in.end()
	in.want(200, "", "s", "{}\n")
	in.scriptedPlugin("s", "script")
	activation := admin.Activation{Plugin: "script", OnError: "reject"}
	if _, err := in.Activate(t.Context(), "s", activation); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		body   string
		status int
		part   string
	}{
		{"drop", 200, `"accepted":0,"filtered":1,"rejected":0,"duplicates":0,"deadlettered":0`},
		{"reject", 422, `"code":"plugin_rejected"`},
		{"trap", 422, `"code":"plugin_failed"`},
	} {
		resp, doc := in.once("s/events", c.body, "Content-Type", "text/plain")
		if resp.StatusCode != c.status || !strings.Contains(doc, c.part) || c.status == 422 && !strings.Contains(doc, `"retryable":false`) {
			t.Errorf("%s: %d %s, want %d with %s", c.body, resp.StatusCode, doc, c.status, c.part)
		}
	}
	if rows := in.rows("s"); len(rows) != 1 || string(rows[0].Data) != "{}" {
		t.Errorf("stored %+v", rows)
	}
	if rows := in.rows("s" + event.DeadLetterSuffix); len(rows) != 0 {
		t.Errorf("set aside %+v", rows)
	}
}
