package cloudevents

import (
	"bytes"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/headgate-io/headgate/event"
)

// fields makes header fields of lines; required attributes come with them.
func fields(lines ...string) (all []event.Attr) {
	for _, line := range append(lines, "ce-specversion: 1.0", "ce-id: i", "ce-source: /s", "ce-type: t", "host: x") {
		name, value, _ := strings.Cut(line, ":")
		all = append(all, event.Attr{Name: []byte(name), Value: []byte(strings.TrimPrefix(value, " "))})
	}
	return all
}

func fromHeaders(all []event.Attr) (*event.Event, Fault, *event.Problem) {
	b := &event.Batch{Events: make([]event.Event, 1)}
	f, p := new(Decoder).Headers(b, 0, all)
	return &b.Events[0], f, p
}

func TestHeaders(t *testing.T) {
	e, f, p := fromHeaders(fields("content-type: text/plain; charset=x", "ce-time: 2018-04-05T17:31:00Z", "ce-ext: %C3%B6", "ce-empty:"))
	if f.Detail != "" || p != nil {
		t.Fatal(f, p)
	}
	const want = "datacontenttype=text/plain; charset=x time=2018-04-05T17:31:00Z ext=ö empty= specversion=1.0 source=/s type=t"
	if got := text(e); got != want || string(e.ID) != "i" || e.Time != 1522949460e9 {
		t.Errorf("attributes %s, id %q, time %d", got, e.ID, e.Time)
	}
}

func TestHeaderFaults(t *testing.T) {
	for _, c := range []struct{ line, name, detail string }{
		{"ce-subject:", "subject", isEmpty},
		{"ce-partitionkey:", "partitionkey", isEmpty},
		{"ce-ext-a: 1", "ext-a", badName},
		{"ce-: 1", "", badName},
		{"ce-data: 1", "data", reserved},
		{"ce-data_base64: 1", "data_base64", badName},
		{"ce-ext: %0A", "ext", badText},
		{"ce-time: now", "time", badTime},
		{"content-type: xyz", "datacontenttype", badType},
		{"content-type:", "datacontenttype", badType},
		{"content-type: a/b/c", "datacontenttype", badType},
	} {
		_, f, p := fromHeaders(fields(c.line))
		if p != nil || string(f.Name) != c.name || f.Detail != c.detail {
			t.Errorf("%s: %q %s, %v", c.line, f.Name, f.Detail, p)
		}
	}
	for i, name := range []string{"specversion", "id", "source", "type"} {
		if _, f, _ := fromHeaders(append(fields()[:i:i], fields()[i+1:]...)); string(f.Name) != name || f.Detail != isMissing {
			t.Errorf("without %s: %+v", name, f)
		}
	}
	for _, line := range []string{"ce-id: j", "ce-ext: %", "ce-ext: %C0%A0", "ce-ext: \"a"} {
		if _, _, p := fromHeaders(fields(line)); p == nil || p.Code != event.BadParameter {
			t.Errorf("%s: %v", line, p)
		}
	}
}

// Case R01, with what the specification gives as examples.
func TestR01Unescape(t *testing.T) {
	for value, want := range map[string]string{
		"a%20b": "a b", `"Euro%20%E2%82%AC"`: "Euro €", "a%2520b": "a%20b", "": "", `""`: "", `"a\"b\\%41"`: `a"b\A`,
		"Euro%20%E2%82%AC%20%F0%9F%98%80": "Euro € 😀", "%e2%82%ac": "€", "caf\xc3\xa9": "café", `W/"a"`: `W/"a"`, "a+b": "a+b",
	} {
		if got, detail := Unescape(nil, []byte(value)); detail != "" || string(got) != want {
			t.Errorf("%s: %q %s, want %q", value, got, detail, want)
		}
	}
	for _, value := range []string{"%C0%A0", "%ED%A0%80", "\xff", "%", "%4", "%4x", "100% sure", `"`, `"a`, `"a"b`, `"a\"`, `"%"`, "%FF"} {
		if got, detail := Unescape(nil, []byte(value)); detail == "" {
			t.Errorf("%s is taken for %q", value, got)
		}
	}
}

func TestTimes(t *testing.T) {
	for text, want := range map[string]int64{
		"1970-01-01T00:00:00Z": 0, "1970-01-01t00:00:01.5z": 15e8, "1970-01-01T00:00:00.0000000019+00:00": 1, "1970-01-01T01:00:00+01:30": -1800e9,
		"1969-12-31T23:59:60Z": 0, "2020-02-29T23:59:59.999999999-23:59": 1583107139_999999999, "0001-01-01T00:00:00Z": 0, "9999-12-31T23:59:59Z": 0,
	} {
		if got, ok := parseTime([]byte(text)); !ok || got != want {
			t.Errorf("%s: %d %v, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "lunchtime", "2018-04-05T18:31Z", "2018-04-05T18:31:00X", "2018-04-05T18:31:00", "2018-04-05T18:31:00+24:00",
		"2018-04-05T18:31:00+23:60", "2018-04-05T18:31:00+0500", "2018-04-05T18:31:00+05", "2018-04-05T18:31:00+xx:00", "2018-04-05T18:31:00.Z",
		"2018-04-05T18:31:00,5Z", "2018-4-05T18:31:00Z", "2018-04-05 18:31:00Z", "2019-02-29T00:00:00Z", "2018-13-01T00:00:00Z", "2018-00-01T00:00:00Z",
		"2018-01-00T00:00:00Z", "2018-01-01T24:00:00Z", "2018-01-01T00:60:00Z", "2018-01-01T00:00:61Z", "2018-01-01T00:00:00ZZ", "+018-01-01T00:00:00Z"} {
		if got, ok := parseTime([]byte(text)); ok {
			t.Errorf("%s is taken for %d", text, got)
		}
	}
}

func FuzzUnescape(f *testing.F) {
	for _, seed := range []string{"a%20b", `"Euro%20%E2%82%AC"`, "%C0%A0", "a%2520b", `"\"`, `"a\%41"`, "%", "%4", "ö"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		before := bytes.Clone(value)
		got, detail := Unescape(make([]byte, 0, len(value)), value)
		if !bytes.Equal(value, before) {
			t.Fatal("the header was changed")
		}
		if detail != "" {
			return
		}
		if len(got) > len(value) || !utf8.Valid(got) {
			t.Fatalf("%q becomes %q", value, got)
		}
		if len(value) > 0 && value[0] == '"' {
			return
		}
		if want, err := url.PathUnescape(string(value)); err != nil || want != string(got) {
			t.Fatalf("%q becomes %q, want %q, %v", value, got, want, err)
		}
	})
}

func FuzzHeaders(f *testing.F) {
	f.Add("ce-subject: a%20b\nce-ext: 1\ncontent-type: application/json")
	f.Add("ce-id: j\nce-: x\nce-partitionkey:")
	f.Fuzz(func(t *testing.T, lines string) {
		e, fault, p := fromHeaders(fields(strings.Split(lines, "\n")...))
		check(t, e, fault.Detail == "" && p == nil)
	})
}

func FuzzJSON(f *testing.F) {
	for _, seed := range []string{minimal, `{` + needed + `,"data_base64":"TWE=","ext":"\ud83d\ude00","time":"2018-04-05T17:31:00Z"}`,
		`{` + needed + `,"data":{"id":[]},"partitionkey":"k","ext":-7,"ext2":true,"subject":null}`, `{"id":"\ud800"}`, `[]`, `"x"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if e, fault := read(string(data)); e != nil {
			if fault.Offset < 0 || fault.Offset > len(data) {
				t.Fatalf("offset %d of %d", fault.Offset, len(data))
			}
			check(t, e, fault.Detail == "")
		}
	})
}

// check fails unless e has what a valid event has, and nothing when it is not valid.
func check(t *testing.T, e *event.Event, valid bool) {
	t.Helper()
	if !valid {
		if e.Attrs != nil || e.ID != nil {
			t.Fatalf("a faulty event has %s", text(e))
		}
		return
	}
	seen := map[string]bool{"id": true}
	for _, a := range e.Attrs {
		if seen[string(a.Name)] || !utf8.Valid(a.Value) || !isName(a.Name) && string(a.Name) != ContentType {
			t.Fatalf("attributes %s", text(e))
		}
		seen[string(a.Name)] = true
	}
	if len(e.ID) == 0 || !seen["specversion"] || !seen["source"] || !seen["type"] || len(e.Attrs) > MaxAttrs+1 {
		t.Fatalf("id %q, attributes %s", e.ID, text(e))
	}
}
