package ingest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/jsonscan"
	"github.com/headgate-io/headgate/sdk/wire"
)

const (
	jsonType = "Content-Type: application/json"
	textType = "Content-Type: text/plain; charset=UTF-8"
	rawType  = "Content-Type: application/octet-stream"
)

// framingCase is a request, and what becomes of its events on a stream with limits of 64 bytes an event, 100 events a request
// and 8 levels of JSON.
type framingCase struct {
	name, body, header string
	status             int
	code               event.Code // of the answer
	stored             []string
	errors             string // index:offset:code of each
}

func checkFraming(t *testing.T, cases []framingCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			g := serve(t, Config{}, &fakeStream{settings: Settings{Limits: Limits{Event: 64, Events: 100, Depth: 8}}})
			r := g.post(c.body, c.header).want(t, c.status, c.code)
			if got := g.data(); !slices.Equal(got, c.stored) {
				t.Errorf("stored %q, want %q", got, c.stored)
			}
			var errs []string
			for _, e := range r.doc.Errors {
				errs = append(errs, fmt.Sprintf("%d:%d:%s", e.Index, e.Offset, e.Code))
				if e.Detail == "" {
					t.Errorf("error %d has no detail", e.Index)
				}
			}
			if got := strings.Join(errs, " "); got != c.errors {
				t.Errorf("errors %q, want %q", got, c.errors)
			}
			if c.status < 300 && r.doc.Accepted != len(c.stored) || r.doc.Rejected != len(r.doc.Errors) {
				t.Errorf("counts: %s", r.body)
			}
			if n := fmt.Sprint(len(errs)); len(errs) > 0 && r.Header.Get("Headgate-Rejected") != n {
				t.Errorf("Headgate-Rejected %q, want %s", r.Header.Get("Headgate-Rejected"), n)
			}
		})
	}
}

var longEvent = `{"a":"` + strings.Repeat("x", 100) + `"}`

func deep(n int) string     { return strings.Repeat("[", n) + strings.Repeat("]", n) }
func inObject(n int) string { return `{"a":` + deep(n-1) + `}` }

func prefixedEvents(all ...string) (b string) {
	for _, e := range all {
		b = string(wire.AppendEvent([]byte(b), []byte(e), wire.Prefixed))
	}
	return b
}

func TestD01D03D04D06D08NDJSON(t *testing.T) {
	checkFraming(t, []framingCase{
		{"ndjson", "{\"a\":1}\n{\"a\":2}\n", ndjson, 200, "", []string{`{"a":1}`, `{"a":2}`}, ""},
		{"no last newline", "{\"a\":1}\n{\"a\":2}", ndjson, 200, "", []string{`{"a":1}`, `{"a":2}`}, ""},
		{"white space in a line stays", " {\"a\" : 1}\t\n", ndjson, 200, "", []string{" {\"a\" : 1}\t"}, ""},
		{"D01 two values in a line", "{\"a\":1}{\"a\":2}\n{\"a\":3}\n", ndjson, 207, "", []string{`{"a":3}`}, "0:7:trailing_data"},
		{"D03 newlines lost", `{"event":"one"}{"event":"two"}{"event":"three"}`, ndjson, 400, event.TrailingData, nil, "0:15:trailing_data"},
		{"D04 blank lines", "{\"a\":1}\n\n{\"a\":2}\n\n", ndjson, 200, "", []string{`{"a":1}`, `{"a":2}`}, ""},
		{"D04 blank lines with CR", "{\"a\":1}\r\n\r\n{\"a\":2}\r\n\r\n", ndjson, 200, "", []string{`{"a":1}`, `{"a":2}`}, ""},
		{"D04 lines of white space", "{\"a\":1}\n \t \n{\"a\":2}\n\t\r\n", ndjson, 200, "", []string{`{"a":1}`, `{"a":2}`}, ""},
		{"D06 a broken line", "{\"a\":1}\n{bad\n{\"a\":2}\n", ndjson, 207, "", []string{`{"a":1}`, `{"a":2}`}, "1:9:malformed_json"},
		{"D08 a line over the limit", "{\"a\":1}\n" + longEvent + "\n{\"a\":2}\n", ndjson, 207, "", []string{`{"a":1}`, `{"a":2}`}, "1:8:event_too_large"},
		{"every line broken", "{\n[\n", ndjson, 400, event.MalformedJSON, nil, "0:1:malformed_json 1:3:malformed_json"},
		{"refused for two reasons", "{\n" + longEvent, ndjson, 422, event.MalformedJSON, nil, "0:1:malformed_json 1:2:event_too_large"},
		{"no lines", "", ndjson, 200, "", nil, ""},
	})
}

func TestD14E02JSON(t *testing.T) {
	checkFraming(t, []framingCase{
		{"D14 empty array", " [ ] ", jsonType, 200, "", nil, ""},
		{"array", "[ {\"a\":1} ,\n2, \"x\"]\n", jsonType, 200, "", []string{`{"a":1}`, "2", `"x"`}, ""},
		{"value", "\n {\"a\":\n1} \n", jsonType, 200, "", []string{"{\"a\":\n1}"}, ""},
		{"empty JSON", " ", jsonType, 400, event.MalformedJSON, nil, ""},
		{"two values", "{} {}", jsonType, 400, event.TrailingData, nil, "0:3:trailing_data"},
		{"trailing comma", "[1,]", jsonType, 400, event.MalformedJSON, nil, ""},
		{"data behind an array", "[1] 2", jsonType, 400, event.TrailingData, nil, ""},
		{"E02 array cut off", "[" + strings.Repeat(`{"a":1},`, 99) + `{"a":1}`, jsonType, 400, event.MalformedJSON, nil, ""},
		{"array with a large element", "[1," + longEvent + ",2]", jsonType, 207, "", []string{"1", "2"}, "1:3:event_too_large"},
	})
}

func TestG01G02G03G10Content(t *testing.T) {
	checkFraming(t, []framingCase{
		{"G10 depth", inObject(8), jsonType, 200, "", []string{inObject(8)}, ""},
		{"G10 too deep", inObject(9), jsonType, 422, event.TooDeep, nil, "0:12:too_deep"},
		{"G10 too deep in an array", "[" + inObject(8) + "," + inObject(9) + ",1]", jsonType, 207, "", []string{inObject(8), "1"}, "1:34:too_deep"},
		{"G01 bad UTF-8 in a line", "{\"a\":1}\n{\"event\":\"\xe4\"}\n{\"a\":2}\n", ndjson, 207, "", []string{`{"a":1}`, `{"a":2}`}, "1:18:invalid_utf8"},
		{"G03 bad UTF-8", "{\"m\":\"a\xffb\"}", jsonType, 400, event.InvalidUTF8, nil, "0:7:invalid_utf8"},
		{"bad UTF-8 in an array", "[1,\"\xff\",2]", jsonType, 207, "", []string{"1", "2"}, "1:4:invalid_utf8"},
		{"G02 opaque", "\xff\xfe", rawType, 200, "", []string{"\xff\xfe"}, ""},
		{"empty opaque", "", rawType, 200, "", nil, ""},
		{"text", "a\r\n\nb ö\n ", textType, 200, "", []string{"a", "b ö", " "}, ""},
		{"text with bad UTF-8", "a\nb\xff\n", textType, 207, "", []string{"a"}, "1:3:invalid_utf8"},
	})
}

func TestF05F06Sizes(t *testing.T) {
	checkFraming(t, []framingCase{
		{"F05 one large event", strings.Repeat("x", 65), rawType, 413, event.EventTooLarge, nil, "0:0:event_too_large"},
		{"F06 too many events", strings.Repeat("1\n", 101), ndjson, 413, event.TooManyEvents, nil, ""},
		{"F06 as many as allowed", strings.Repeat("1\n", 100), ndjson, 200, "", slices.Repeat([]string{"1"}, 100), ""},
	})
}

func TestPrefixedEvents(t *testing.T) {
	checkFraming(t, []framingCase{
		{"prefixed", prefixedEvents("a", "", "b\nc"), "Content-Type: " + wire.TypePrefixed, 200, "", []string{"a", "", "b\nc"}, ""},
		{"prefixed, cut", prefixedEvents("a") + "\x05b", "Content-Type: " + wire.TypePrefixed, 400, event.BadFraming, nil, ""},
	})
}

func TestD03SaysWhatToDo(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{})
	r := g.post(`{"event":"one"}{"event":"two"}`, ndjson).want(t, 400, event.TrailingData)
	if !strings.Contains(r.doc.Detail, "byte 15") || !strings.Contains(r.doc.Detail, "--data-binary") {
		t.Errorf("detail: %s", r.doc.Detail)
	}
}

func TestF05NamesTheLimit(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{settings: Settings{Limits: Limits{Event: 64}}})
	r := g.post(strings.Repeat("x", 65), rawType).want(t, 413, event.EventTooLarge)
	if r.doc.Scope != "event" || r.doc.Limit != 64 || r.doc.Observed != 65 {
		t.Errorf("got %s", r.body)
	}
	r = g.post(strings.Repeat("1\n", 100_001), ndjson).want(t, 413, event.TooManyEvents)
	if r.doc.Scope != "count" || r.doc.Limit != 100_000 {
		t.Errorf("got %s", r.body)
	}
}

func TestG01G03PolicyPass(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{settings: Settings{PassUTF8: true}})
	for header, body := range map[string]string{ndjson: "{\"m\":\"a\xffb\"}", jsonType: "{\"event\":\"\xe4\"}", textType: "\xff"} {
		g.post(body, header).want(t, 200, "")
		if got := g.data(); !slices.Equal(got, []string{body}) {
			t.Errorf("stored %q, want %q", got, body)
		}
	}
}

func TestErrorsAreTruncated(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{})
	r := g.post(strings.Repeat("{\n", 250)+"1\n", ndjson).want(t, 207, "")
	if r.doc.Rejected != 250 || len(r.doc.Errors) != 100 || !r.doc.Truncated || r.Header.Get("Headgate-Rejected") != "250" {
		t.Errorf("rejected %d, %d listed, truncated %v", r.doc.Rejected, len(r.doc.Errors), r.doc.Truncated)
	}
}

func TestWatchedFields(t *testing.T) {
	pointer, err := jsonscan.ParsePointer("/k")
	if err != nil {
		t.Fatal(err)
	}
	g := serve(t, Config{}, &fakeStream{settings: Settings{Watch: []jsonscan.Pointer{pointer}}})
	for header, body := range map[string]string{ndjson: "{}\n{\"a\":1, \"k\":\"v\"}\n", jsonType: `[ {}, {"a":1, "k":"v"} ]`} {
		g.post(body, header).want(t, 200, "")
		all := g.take()
		if len(all) != 2 || all[0].span.Len != 0 || all[1].data[all[1].span.Off:][:all[1].span.Len] != `"v"` {
			t.Errorf("%s: spans %+v", header, all)
		}
	}
}

// Nothing may be decoded from a body that is cut anywhere but at the end of a line or value.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"{\"a\":1}\n\n[2]\r\n", "[1,{\"a\":[]},\"\xff\"]", "\x01a\x00\x03b\nc", "[[[[", "1 2\n"} {
		for kind := range uint8(binaryText) + 1 {
			f.Add([]byte(seed), kind)
		}
	}
	for _, seed := range []string{`{"specversion":"1.0","id":"1","source":"a","type":"t"}`, `[{"specversion":"1.0","id":"1","source":"a","type":"t"},1]`} {
		f.Add([]byte(seed), uint8(structured))
		f.Add([]byte(seed), uint8(batched))
	}
	fields := []event.Attr{{Name: []byte("ce-specversion"), Value: []byte("1.0")}, {Name: []byte("ce-id"), Value: []byte("%41")},
		{Name: []byte("ce-source"), Value: []byte("/s")}, {Name: []byte("ce-type"), Value: []byte("t")}}
	s := &Settings{Limits: Limits{Event: 64, Events: 8, Depth: 3}}
	f.Fuzz(func(t *testing.T, body []byte, kind uint8) {
		b := &event.Batch{Body: body}
		p := &plan{settings: s, limits: s.limits(), framing: framing(kind) % (binaryText + 1), binary: fields}
		if decode(b, p) != nil {
			return
		}
		for i := range b.Events {
			e := &b.Events[i]
			if got := string(body[e.Offset:][:len(e.Data)]); got != string(e.Data) {
				t.Fatalf("event %d is %q, at its offset there is %q", i, e.Data, got)
			}
			if e.Verdict == event.Keep && len(e.Data) > 64 {
				t.Fatalf("event %d has %d bytes", i, len(e.Data))
			}
		}
		if len(b.Errors) != min(b.Counts().Rejected, event.MaxErrors) {
			t.Fatalf("%d events are refused, %d errors", b.Counts().Rejected, len(b.Errors))
		}
		for _, e := range b.Errors {
			if e.Offset < 0 || e.Offset > len(body) || b.Events[e.Index].Verdict != event.Rejected {
				t.Fatalf("error %+v of %d bytes", e, len(body))
			}
		}
	})
}

func TestDecodeDoesNotAllocatePerEvent(t *testing.T) {
	line := `{"time":"17/May/2015:08:05:32 +0000","remote_ip":"93.180.71.3","request":"GET /downloads/product_1 HTTP/1.1","response":304}` + "\n"
	body := []byte(strings.Repeat(line, 500))
	array := []byte("[" + strings.TrimSuffix(strings.ReplaceAll(string(body), "\n", ","), ",") + "]")
	b, s := &event.Batch{}, &Settings{}
	for _, c := range []struct {
		framing framing
		body    []byte
	}{{lines, body}, {oneJSON, array}, {textLines, body}} {
		p := &plan{settings: s, limits: s.limits(), framing: c.framing}
		if n := testing.AllocsPerRun(50, func() {
			b.Reset()
			b.Body = c.body
			if problem := decode(b, p); problem != nil || len(b.Events) != 500 || b.Counts().Rejected != 0 {
				t.Fatalf("%v, %d events", problem, len(b.Events))
			}
		}); n > 2 {
			t.Errorf("framing %d: %.0f allocations for 500 events", c.framing, n)
		}
	}
}
