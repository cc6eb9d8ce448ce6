package gateway

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate-io/headgate/gateway/config"
	"github.com/headgate-io/headgate/ingest/cloudevents"
	"github.com/headgate-io/headgate/sdk/wire"
)

const (
	ndjson = "application/x-ndjson"
	asJSON = "application/json"
	opaque = "application/octet-stream"
)

// keyedBy is a configuration with the stream s.
func keyedBy(t *testing.T, key config.Key) config.Config {
	cfg := zero(t)
	cfg.Streams = map[string]config.Stream{"s": {Key: key}}
	return cfg
}

// stored returns what stream s holds, each event with its key.
func (in *instance) stored() (all []string) {
	in.t.Helper()
	for _, r := range in.rows("s") {
		key := "-"
		if r.HasKey {
			key = string(r.Key)
		}
		all = append(all, fmt.Sprintf("%s %s", key, r.Data))
	}
	slices.Sort(all)
	return all
}

func (in *instance) wantStored(want ...string) {
	in.t.Helper()
	if got := in.stored(); !slices.Equal(got, want) {
		in.t.Errorf("stored %q, want %q", got, want)
	}
}

// refused sends a body that is refused whole.
func (in *instance) refused(status int, code, mediaType, body string) answer {
	in.t.Helper()
	got, a := in.send("s/events", mediaType, body)
	if got != status || a.Code != code {
		in.t.Errorf("%s: %d %+v, want %d %s", body, got, a, status, code)
	}
	return a
}

func TestA03D15G09Keys(t *testing.T) {
	in := start(t, keyedBy(t, config.Key{JSON: "/k", Required: true}))
	defer in.end()
	in.refused(422, "key_required", asJSON, `{"a":1}`)
	in.refused(422, "key_required", asJSON, `{"k":null}`)
	in.refused(422, "key_not_scalar", asJSON, `{"k":{"x":1}}`)
	in.refused(422, "key_not_scalar", asJSON, `{"k":[]}`)
	in.refused(422, "duplicate_name", asJSON, `{"k":1,"k":-1}`)
	in.wantStored()
	twice := `{"qty":1,"qty":-1,"k":"my-value"}`
	if status, a := in.send("s/events", asJSON, twice); status != 200 || a.Accepted != 1 {
		t.Errorf("%d %+v", status, a)
	}
	in.wantStored("my-value " + twice)
}

func TestG06LargeNumbersAreKeysAsTheyStand(t *testing.T) {
	in := start(t, keyedBy(t, config.Key{JSON: "/id"}))
	defer in.end()
	const line = `{"id":2882429806056571124, "f":1.10e+2}`
	if status, a := in.send("s/events", ndjson, line); status != 200 {
		t.Errorf("%d %+v", status, a)
	}
	in.wantStored("2882429806056571124 " + line)
}

func TestE01StrictStoresNothingLenientTheGoodOnes(t *testing.T) {
	in := start(t, keyedBy(t, config.Key{JSON: "/k", Required: true}))
	defer in.end()
	const body = `[{"k":"x"},{"a":1}]`
	if status, a := in.send("s/events?mode=strict", asJSON, body); status != 422 || a.Code != "strict_rejected" || len(a.Errors) != 1 || a.Errors[0].Index != 1 {
		t.Errorf("strict: %d %+v", status, a)
	}
	in.wantStored()
	if status, a := in.send("s/events", asJSON, body); status != 207 || a.Accepted != 1 || a.Rejected != 1 || a.Errors[0].Code != "key_required" {
		t.Errorf("lenient: %d %+v", status, a)
	}
	in.wantStored(`x {"k":"x"}`)
}

func TestE05EachRefusedEventIsListed(t *testing.T) {
	in := start(t, keyedBy(t, config.Key{}))
	defer in.end()
	in.scriptedPlugin("s", "scripted")
	status, a := in.send("s/events", "text/plain", "0a\nr\n0b\nr\n0c\n")
	if status != 207 || a.Accepted != 3 || a.Rejected != 2 || len(a.Errors) != 2 || a.Errors[0].Index != 1 || a.Errors[1].Index != 3 ||
		a.Errors[0].Code != "plugin_rejected" || a.Errors[0].Detail == "" {
		t.Errorf("%d %+v", status, a)
	}
	in.wantStored("- 0a", "- 0b", "- 0c")
}

func TestE06ABadEventIsNever200(t *testing.T) {
	in := start(t, keyedBy(t, config.Key{}))
	defer in.end()
	for _, ack := range []string{"accepted", "durable", "delivered"} {
		resp, _ := in.do("POST", in.events("s?ack="+ack), "1\n{\n3\n", "Content-Type: "+ndjson)
		if resp.StatusCode != 207 || resp.Header.Get("Headgate-Rejected") != "1" {
			t.Errorf("ack=%s: %d %v", ack, resp.StatusCode, resp.Header)
		}
	}
}

func gzipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(text))
	w.Close()
	return b.String()
}

func TestF06EveryLimitIsTheStreams(t *testing.T) {
	cfg := keyedBy(t, config.Key{})
	cfg.Streams["s"] = config.Stream{Limits: config.Limits{Body: 400, Inflated: 500, Event: 100, Events: 10, Depth: 3}}
	in := start(t, cfg)
	defer in.end()
	for _, c := range []struct {
		name, body, scope string
		limit, observed   int64
		status            int
		coding            string
	}{
		{"events", strings.Repeat("1\n", 11), "count", 10, 11, 413, ""},
		{"body", strings.Repeat("1\n", 201), "body", 400, 402, 413, ""},
		{"event", `"` + strings.Repeat("x", 99) + `"`, "event", 100, 101, 413, ""},
		{"inflated", gzipped(strings.Repeat("1\n", 300)), "inflated", 500, 501, 413, "gzip"},
		{"depth", "[[[[]]]]", "", 0, 0, 422, ""},
	} {
		status, doc := in.post("s", c.body)
		if c.coding != "" {
			_, a := in.with("s/events", c.body, "Content-Type: "+ndjson, "Content-Encoding: "+c.coding)
			status, doc = a.Status, fmt.Sprintf(`"scope":%q,"limit":%d,"observed":%d`, a.Scope, a.Limit, a.Observed)
		}
		if status != c.status {
			t.Errorf("%s: %d %s", c.name, status, doc)
		}
		if c.scope != "" && !strings.Contains(doc, fmt.Sprintf(`"scope":%q,"limit":%d,"observed":%d`, c.scope, c.limit, c.observed)) {
			t.Errorf("%s: %s", c.name, doc)
		}
		if c.scope == "" && !strings.Contains(doc, "3 levels") {
			t.Errorf("%s: %s", c.name, doc)
		}
	}
	in.wantStored()
	if status, a := in.send("s/events", ndjson, strings.Repeat("1\n", 10)); status != 200 || a.Accepted != 10 {
		t.Errorf("%d %+v", status, a)
	}
}

func TestG01G02G03BytesComeBack(t *testing.T) {
	cfg := keyedBy(t, config.Key{})
	cfg.Streams["pass"] = config.Stream{UTF8: "pass"}
	in := start(t, cfg)
	defer in.end()
	const line = "{\"event\":\"\xe4\"}"
	status, a := in.send("s/events", ndjson, "1\n"+line+"\n2\n")
	if status != 207 || a.Accepted != 2 || a.Errors[0].Index != 1 || a.Errors[0].Code != "invalid_utf8" {
		t.Errorf("%d %+v", status, a)
	}
	if status, a := in.send("s/events", opaque, "\xff\xfe"); status != 200 || a.Accepted != 1 {
		t.Errorf("%d %+v", status, a)
	}
	in.wantStored("- 1", "- 2", "- \xff\xfe")
	if status, a := in.send("pass/events", ndjson, line+"\n{\"m\":\"a\xffb\"}\n"); status != 200 || a.Accepted != 2 {
		t.Errorf("%d %+v", status, a)
	}
	if rows := in.rows("pass"); len(rows) != 2 || string(rows[0].Data) != line || string(rows[1].Data) != "{\"m\":\"a\xffb\"}" {
		t.Errorf("%+v", rows)
	}
}

// G10: one limit for the way in and the way out.
func TestG10DepthIsLimitedOnce(t *testing.T) {
	cfg := keyedBy(t, config.Key{JSON: "/k"})
	in := start(t, cfg)
	nested := func(n int) string {
		return `{"k":"` + fmt.Sprint(n) + `","a":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + "}"
	}
	var want []string
	for _, n := range []int{33, 34, 64} {
		if status, a := in.send("s/events", asJSON, nested(n)); status != 200 || a.Accepted != 1 {
			t.Errorf("%d levels: %d %+v", n, status, a)
		}
		want = append(want, fmt.Sprintf("%d %s", n, nested(n)))
	}
	if status, doc := in.call("POST", in.events("s"), asJSON, nested(65)); status != 422 || !strings.Contains(doc, `"too_deep"`) || !strings.Contains(doc, "64 levels") {
		t.Errorf("65 levels: %d %s", status, doc)
	}
	in.end()
	in = start(t, cfg)
	defer in.end()
	in.wantStored(want...)
}

// What comes out of the backend is what went in, whatever the framing, through frames of both kinds and a restart.
func TestWhatIsReadBackIsWhatWasSent(t *testing.T) {
	cfg := keyedBy(t, config.Key{})
	cfg.Streams["s"] = config.Stream{Partitions: config.Partitions{Max: 3}, Frame: config.Frame{Bytes: 4 << 10, Events: 7}}
	in := start(t, cfg)
	sent := map[string]int{}
	piece := rapid.SampledFrom([]string{"\n", "\r\n", "\x00", "\xff", "\xef\xbf\xbd", "a", "{", "é", "\x0a\x0a", strings.Repeat("z", 200)})
	number := 0
	rapid.Check(t, func(rt *rapid.T) {
		number++
		events := []string{fmt.Sprint(number)}
		for _, p := range rapid.SliceOfN(rapid.SliceOfN(piece, 0, 5), 1, 12).Draw(rt, "events") {
			events = append(events, strings.Join(p, ""))
		}
		body, mediaType := "", wire.TypePrefixed
		switch rapid.IntRange(0, 2).Draw(rt, "kind") {
		case 0:
			mediaType = opaque
			events = []string{events[0] + strings.Join(events[1:], "")}
			body = events[0]
		case 1:
			mediaType = cloudevents.TypeBatch
			for i := range events {
				events[i] = fmt.Sprintf(`{"specversion":"1.0", "id":"%d-%d","source":"/s",`+"\n"+`"type":"t"}`, number, i)
			}
			body = "[" + strings.Join(events, ",") + "]"
		default:
			for _, e := range events {
				body = string(wire.AppendEvent([]byte(body), []byte(e), wire.Prefixed))
			}
		}
		if status, a := in.send("s/events", mediaType, body); status != 200 || a.Accepted != len(events) {
			rt.Fatalf("%d %+v", status, a)
		}
		for _, e := range events {
			sent[e]++
		}
	})
	in.end()
	in = start(t, cfg)
	defer in.end()
	got := map[string]int{}
	for _, r := range in.rows("s") {
		got[string(r.Data)]++
	}
	if !maps.Equal(sent, got) {
		t.Errorf("%d different events were sent, %d came back", len(sent), len(got))
	}
}
