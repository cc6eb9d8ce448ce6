package gateway

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/gateway/config"
	"github.com/headgate-io/headgate/sdk/consume"
)

const (
	ceType      = "application/cloudevents+json"
	ceBatchType = "application/cloudevents-batch+json"
)

// with sends a request with header lines of its own.
func (in *instance) with(path, body string, header ...string) (status int, a answer) {
	in.t.Helper()
	resp, doc := in.do("POST", fmt.Sprintf("http://%s/v1/streams/%s", in.addresses.http, path), body, header...)
	if err := json.Unmarshal([]byte(doc), &a); err != nil {
		in.t.Fatal(err)
	}
	return resp.StatusCode, a
}

// binary are the headers of an event in binary mode, and more.
func binary(more ...string) []string {
	return append([]string{"ce-specversion: 1.0", "ce-id: i-1", "ce-source: /s", "ce-type: t"}, more...)
}

func attrsText[A event.Attr | consume.Attr](attrs []A) (text string) {
	for _, a := range attrs {
		text += fmt.Sprintf("%s=%s ", event.Attr(a).Name, event.Attr(a).Value)
	}
	return text
}

const (
	structuredEvent = `{ "specversion" : "1.0", "id":"i-2", "source":"/s", "type":"t", "time":"2018-04-05T17:31:00.5+01:00", "partitionkey":"k 2", "extra":"\u00fc€\ud83d\ude00", "data":{"a":1e0}}`
	structuredAttrs = "specversion=1.0 source=/s type=t time=2018-04-05T17:31:00.5+01:00 partitionkey=k 2 extra=ü€😀 content-type=application/cloudevents+json "
	binaryAttrs     = "datacontenttype=application/json extra=ü€😀 partitionkey=k 1 source=/s specversion=1.0 subject=a b type=t "
)

// sorted writes attributes in the order of their names: a Go client sends headers in any.
func sorted(attrs string) string {
	all := strings.Split(strings.TrimSpace(strings.ReplaceAll(attrs, "k 1", "k\x001")), " ")
	slices.Sort(all)
	return strings.Join(all, " ")
}

func TestR06AttributesReachJetStream(t *testing.T) {
	cfg := zero(t)
	in := start(t, cfg)
	sendCloudEvents(in)
	in.end()
	in = start(t, cfg)
	defer in.end()
	rows := in.rows("web")
	if len(rows) != 2 {
		t.Fatalf("%d events are stored", len(rows))
	}
	if string(rows[0].ID) != "i-1" {
		slices.Reverse(rows)
	}
	checkCloudEvents(t, rows)
	_, doc := in.call("GET", fmt.Sprintf("http://%s/v1/streams/web/events?from=start&follow=false", in.addresses.admin), "", "")
	for _, part := range []string{`"id":"i-1"`, `"key":"k 2"`, `"extra":"ü€😀"`, `"time":"2018-04-05T16:31:00.5Z"`, `"subject":"a b"`} {
		if !strings.Contains(doc, part) {
			t.Errorf("no %s in %s", part, doc)
		}
	}
}

func sendCloudEvents(in *instance) {
	in.t.Helper()
	header := binary("content-type: application/json", "ce-subject: a%20b", "ce-partitionkey: k%201", "ce-extra: %C3%BC%E2%82%AC%F0%9F%98%80")
	if status, a := in.with("web/events?ack=delivered", "{\"a\":\n1}", header...); status != 200 || a.Accepted != 1 {
		in.t.Errorf("binary: %d %+v", status, a)
	}
	if status, a := in.send("web/events?ack=delivered", ceType, structuredEvent); status != 200 || a.Accepted != 1 {
		in.t.Errorf("structured: %d %+v", status, a)
	}
}

func checkCloudEvents(t *testing.T, rows []admin.Row) {
	t.Helper()
	if got := sorted(attrsText(rows[0].Attrs)); got != sorted(binaryAttrs) || string(rows[0].Data) != "{\"a\":\n1}" || string(rows[0].Key) != "k 1" {
		t.Errorf("binary: %s, %s, key %q", rows[0].Data, got, rows[0].Key)
	}
	if got := attrsText(rows[1].Attrs); got != structuredAttrs || string(rows[1].Data) != structuredEvent || string(rows[1].Key) != "k 2" ||
		string(rows[1].ID) != "i-2" || rows[1].Time != 1522945860_500000000 {
		t.Errorf("structured: %s\n%s, key %q, id %q, time %d", rows[1].Data, got, rows[1].Key, rows[1].ID, rows[1].Time)
	}
}

func TestR06AttributesReachAnHTTPNode(t *testing.T) {
	cfg, node := onNode(t, "zstd")
	s := cfg.Streams["web"]
	s.Key = config.Key{}
	cfg.Streams["web"] = s
	in := start(t, cfg)
	sendCloudEvents(in)
	in.end()
	rows := make([]admin.Row, 2)
	for _, run := range node.Runs() {
		err := consume.Decode(run.Payload, run.ContentEncoding, run.ContentType, func(e consume.Event) error {
			rows[e.ID[2]-'1'] = row(&e)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	checkCloudEvents(t, rows)
}

func TestR07PartitionKey(t *testing.T) {
	in := start(t, zero(t))
	defer in.end()
	id := 0
	one := func(more string) string {
		id++ // the same one again would be a duplicate
		return fmt.Sprintf(`{"specversion":"1.0","id":"%d","source":"/s","type":"t"%s}`, id, more)
	}
	for _, c := range []struct {
		body, header string
		key          *string
		status       int
	}{
		{one(`,"partitionkey":"p"`), "", new("p"), 200},
		{one(``), "", nil, 200},
		{one(`,"partitionkey":null`), "", nil, 200},
		{one(`,"partitionkey":"p"`), "Headgate-Key: h", new("h"), 200},
		{one(`,"partitionkey":""`), "", nil, 422},
	} {
		status, a := in.with("web/events", c.body, "Content-Type: "+ceType, c.header)
		if status != c.status || status == 422 && a.Code != "invalid_cloudevent" {
			t.Errorf("%s: %d %+v", c.body, status, a)
		}
	}
	if status, a := in.with("web/events", "x", binary("ce-partitionkey:")...); status != 422 || a.Code != "invalid_cloudevent" {
		t.Errorf("binary mode: %d %+v", status, a)
	}
	keys := map[string]int{}
	for _, r := range in.rows("web") {
		keys[fmt.Sprintf("%v %s", r.HasKey, r.Key)]++
	}
	if len(keys) != 3 || keys["true p"] != 1 || keys["true h"] != 1 || keys["false "] != 2 {
		t.Errorf("keys %v", keys)
	}
}

func TestKeyByAttribute(t *testing.T) {
	cfg := zero(t)
	cfg.Streams = map[string]config.Stream{
		"subject": {Key: config.Key{CE: "subject", Required: true}},
		"id":      {Key: config.Key{CE: "id"}},
	}
	in := start(t, cfg)
	defer in.end()
	batch := `[{"specversion":"1.0","id":"1","source":"/s","type":"t","subject":"s","partitionkey":"p"},{"specversion":"1.0","id":"2","source":"/s","type":"t"},` +
		`{"specversion":"1.0","id":"3","source":"/s","type":"t","partitionkey":"p"}]`
	status, a := in.send("subject/events", ceBatchType, batch)
	if status != 207 || a.Accepted != 2 || len(a.Errors) != 1 || a.Errors[0].Index != 1 || a.Errors[0].Code != "key_required" || !strings.Contains(a.Errors[0].Detail, "subject") {
		t.Errorf("%d %+v", status, a)
	}
	if status, a := in.send("id/events", ceBatchType, batch); status != 200 || a.Accepted != 3 {
		t.Errorf("%d %+v", status, a)
	}
	if status, a := in.send("id/events", "application/json", `{"id":4}`); status != 200 {
		t.Errorf("%d %+v", status, a)
	}
	var keys []string
	for _, stream := range []string{"subject", "id"} {
		for _, r := range in.rows(stream) {
			keys = append(keys, fmt.Sprintf("%s:%v:%s", stream, r.HasKey, r.Key))
		}
	}
	slices.Sort(keys)
	if want := []string{"id:false:", "id:true:1", "id:true:2", "id:true:3", "subject:true:p", "subject:true:s"}; !slices.Equal(keys, want) {
		t.Errorf("keys %v", keys)
	}
	for _, bad := range []config.Key{{CE: "a", JSON: "/a"}, {CE: "a", Header: "a"}, {CE: "Sub-ject"}} {
		if bad.Problem() == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}
