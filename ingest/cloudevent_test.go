package ingest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/internal/race"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/ingest/cloudevents"
)

const (
	ceType      = "Content-Type: application/cloudevents+json"
	ceBatchType = "Content-Type: application/cloudevents-batch+json"
	ceCore      = `"specversion":"1.0","source":"/s","type":"t"`
)

// ceHeaders are the required ones of an event, and more.
func ceHeaders(more ...string) []string {
	return append([]string{"ce-specversion: 1.0", "ce-id: 1", "CE-Source: /s", "Ce-Type: t"}, more...)
}

func TestR01HeaderValues(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{})
	for _, c := range []struct{ value, want string }{
		{"a%20b", "a b"}, {`"Euro%20%E2%82%AC"`, "Euro €"}, {"a%2520b", "a%20b"},
	} {
		g.post("x", ceHeaders("ce-subject: "+c.value)...).want(t, 200, "")
		if all := g.take(); len(all) != 1 || !strings.Contains(all[0].attrs, "subject="+c.want+"\n") {
			t.Errorf("%s: stored %+v", c.value, all)
		}
	}
	r := g.post("x", ceHeaders("ce-subject: %C0%A0")...).want(t, 400, event.BadParameter)
	if !strings.Contains(r.doc.Detail, "ce-subject") {
		t.Errorf("detail: %s", r.doc.Detail)
	}
	g.nothing()
}

func TestR02BinaryWithoutContentTypeIsOpaque(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{})
	g.post("\xff{\n", ceHeaders()...).want(t, 200, "")
	g.post("", ceHeaders()...).want(t, 200, "")
	all := g.take()
	if len(all) != 2 || all[0].data != "\xff{\n" || all[1].data != "" || all[0].attrs != "specversion=1.0\nsource=/s\ntype=t\n" || all[0].id != "1" {
		t.Errorf("stored %+v", all)
	}
}

func TestBinaryDataIsCheckedByItsType(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{})
	for _, c := range []struct {
		mediaType, body string
		status          int
		code            event.Code
	}{
		{"application/json", "{\"a\":1} \n", 200, ""},
		{"application/json; charset=utf-8", "[1,\n2]", 200, ""},
		{"application/json", "", 200, ""}, // an event without data
		{"application/json", "{", 400, event.MalformedJSON},
		{"application/json", "1 2", 400, event.TrailingData},
		{"application/json", "\"\xff\"", 400, event.InvalidUTF8},
		{"application/json; charset=latin1", "1", 415, event.UnsupportedMediaType},
		{"application/vnd.x+json", "{", 400, event.MalformedJSON},
		{"text/plain", "a\nb", 200, ""},
		{"text/plain", "a\xff", 400, event.InvalidUTF8},
		{"text/plain; charset=latin1", "a\xff", 415, event.UnsupportedMediaType},
		{"image/png", "\x89PNG\r\n", 200, ""},
		{"application/x-ndjson", "{\n{", 200, ""},
		{"xyz", "1", 422, event.InvalidCloudEvent},
		{"application/json, text/plain", "1", 400, event.AmbiguousContentType},
	} {
		g.post(c.body, ceHeaders("Content-Type: "+c.mediaType)...).want(t, c.status, c.code)
		all := g.take()
		if c.status != 200 {
			if len(all) > 0 {
				t.Errorf("%s: stored %+v", c.mediaType, all)
			}
			continue
		}
		if len(all) != 1 || all[0].data != c.body || !strings.Contains(all[0].attrs, "datacontenttype="+c.mediaType+"\n") {
			t.Errorf("%s: stored %+v", c.mediaType, all)
		}
	}
}

func TestCloudEventModesAreNotMixed(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{})
	one := `{` + ceCore + `,"id":"1"}`
	for _, c := range []struct {
		name, body string
		header     []string
		status     int
		code       event.Code
		says       string
	}{
		{"ce-datacontenttype", "1", ceHeaders("ce-datacontenttype: application/json"), 400, event.BadParameter, "Content-Type"},
		{"headers with a structured event", one, ceHeaders(ceType), 400, event.BadParameter, "both"},
		{"headers with a batch", "[" + one + "]", ceHeaders(ceBatchType), 400, event.BadParameter, "both"},
		{"array in structured mode", "[" + one + "]", []string{ceType}, 400, event.BadFraming, cloudevents.TypeBatch},
		{"one event as a batch", one, []string{ceBatchType}, 400, event.BadFraming, cloudevents.TypeEvent},
		{"no body as a batch", " ", []string{ceBatchType}, 400, event.BadFraming, "array"},
		{"no body", "", []string{ceType}, 400, event.MalformedJSON, "empty"},
		{"two events in structured mode", one + one, []string{ceType}, 400, event.TrailingData, "second value"},
		{"header twice", "1", ceHeaders("ce-id: 2"), 400, event.BadParameter, "ce-id"},
		{"a ce- header alone", "1", []string{jsonType, "ce-foo: 1"}, 422, event.InvalidCloudEvent, "specversion"},
		{"XML", "<", []string{"Content-Type: application/cloudevents+xml"}, 415, event.UnsupportedMediaType, "application/cloudevents+xml"},
		{"batch of XML", "<", []string{"Content-Type: application/cloudevents-batch+xml"}, 415, event.UnsupportedMediaType, ceBatchType[14:]},
		{"no format", one, []string{"Content-Type: application/cloudevents"}, 415, event.UnsupportedMediaType, "application/cloudevents"},
		{"no event", `"x"`, []string{ceType}, 422, event.InvalidCloudEvent, "object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if r := g.post(c.body, c.header...).want(t, c.status, c.code); !strings.Contains(r.doc.Detail, c.says) {
				t.Errorf("detail: %s", r.doc.Detail)
			}
			g.nothing()
		})
	}
}

func TestCloudEventsAreStoredAsTheyCame(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{})
	a := `{ "id":"\u0031", ` + ceCore + `, "data" : {"n":1e0} }`
	b := "{\"id\":\"2\",\n" + ceCore + `,"ext":true}`
	g.post("\n"+a+"\n", ceType+"; charset=UTF-8").want(t, 200, "")
	g.post(" [ "+a+" ,\n"+b+"]\n", strings.ToUpper(ceBatchType)).want(t, 200, "")
	g.post("[]", ceBatchType).want(t, 200, "")
	all := g.take()
	if len(all) != 3 || all[0].data != a || all[1].data != a || all[2].data != b || all[0].id != "1" || all[2].id != "2" {
		t.Errorf("stored %+v", all)
	}
	if want := "specversion=1.0\nsource=/s\ntype=t\next=true\ncontent-type=application/cloudevents+json\n"; all[2].attrs != want {
		t.Errorf("attributes %q, want %q", all[2].attrs, want)
	}
}

func TestR05BatchWithAnInvalidEvent(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{})
	one := `{` + ceCore + `,"id":"1"}`
	r := g.post("["+one+`,{`+ceCore+`,"id":""},`+one+`,5,`+one+"]", ceBatchType).want(t, 207, "")
	if r.doc.Accepted != 3 || r.doc.Rejected != 2 || r.Header.Get("Headgate-Rejected") != "2" || len(g.data()) != 3 {
		t.Errorf("got %s", r.body)
	}
	var errs []string
	for _, e := range r.doc.Errors {
		errs = append(errs, fmt.Sprintf("%d:%d:%s:%s", e.Index, e.Offset, e.Code, e.Detail))
	}
	want := []string{fmt.Sprintf(`1:%d:invalid_cloudevent:attribute "id" must not be empty`, 1+len(one)+len(",{"+ceCore+`,"id":`)),
		fmt.Sprintf("3:%d:invalid_cloudevent:a CloudEvent is a JSON object", 3+2*len(one)+len(",{"+ceCore+`,"id":""}`))}
	if !slices.Equal(errs, want) {
		t.Errorf("errors %q, want %q", errs, want)
	}
	target := events + "?mode=strict"
	g.dial().send(request11(target, "["+one+",5]", ceBatchType)).answer().want(t, 422, event.StrictRejected)
	g.nothing()
}

// An attribute can be six bytes of a body and takes far more memory: it is paid for from the budget.
func TestAttributesArePaidFor(t *testing.T) {
	extra := ""
	for i := range cloudevents.MaxAttrs - 3 {
		extra += fmt.Sprintf(`,"%c":1`, "abcdefghijklmnopqrstuvwxyz0123456789"[i])
	}
	one := `{` + ceCore + `,"id":"1"` + extra + `}`
	body := "[" + strings.Repeat(one+",", 999) + one + "]"
	g := serve(t, Config{}, &fakeStream{})
	g.post(body, ceBatchType).want(t, 200, "")
	if n := len(g.take()); n != 1000 {
		t.Errorf("%d events", n)
	}
	left := int64(1 << 20) // enough for the body, not for 33,000 attributes
	g.budget.Reserve(g.budget.Limit() - left)
	if int64(2*len(body)) > left {
		t.Fatal("the body is too large for this test")
	}
	g.post(body, ceBatchType).want(t, 503, event.Overloaded)
	g.nothing()
	g.budget.Release(g.budget.Limit() - left)
}

// Reading the attributes of events allocates nothing for each.
func TestCloudEventsDoNotAllocatePerEvent(t *testing.T) {
	one := `{` + ceCore + `,"id":"1","time":"2026-03-02T08:00:00Z","subject":"a","data":{"a":1}}`
	body := []byte("[" + strings.Repeat(one+",", 499) + one + "]")
	b, s := &event.Batch{}, &Settings{}
	p := &plan{settings: s, limits: s.limits(), framing: batched}
	if n := testing.AllocsPerRun(50, func() {
		b.Reset()
		b.Body = body
		if problem := decode(b, p); problem != nil || len(b.Events) != 500 || b.Counts().Rejected != 0 {
			t.Fatalf("%v, %d events, %v", problem, len(b.Events), b.Errors)
		}
	}); n > 2 && !race.Enabled {
		t.Errorf("%.0f allocations for 500 events", n)
	}
}

// Of an event or a batch that is cut anywhere nothing is stored; of one whose bytes are damaged anywhere there is an answer.
func TestCloudEventsCutOrDamagedAtEveryByte(t *testing.T) {
	one := `{` + ceCore + `,"id":"\u00e9\"","time":"2026-03-02T08:00:00.5+01:00","ext":-7,"data_base64":"TWE="}`
	s := &Settings{}
	for _, c := range []struct {
		framing framing
		body    string
	}{{structured, one}, {batched, "[" + one + "," + one + "]"}} {
		for at := range len(c.body) {
			b := &event.Batch{Body: []byte(c.body[:at])}
			problem := decode(b, &plan{settings: s, limits: s.limits(), framing: c.framing})
			if problem == nil && b.Counts().Accepted > 0 {
				t.Fatalf("cut at %d: %d events are taken", at, b.Counts().Accepted)
			}
			for _, bad := range []byte{0, '"', '\\', '{', '}', ',', 0xff} {
				b = &event.Batch{Body: []byte(c.body)}
				b.Body[at] = bad
				if problem := decode(b, &plan{settings: s, limits: s.limits(), framing: c.framing}); problem == nil && len(b.Events) == 0 {
					t.Fatalf("%q at %d: neither a problem nor an event", bad, at)
				}
			}
		}
	}
}
