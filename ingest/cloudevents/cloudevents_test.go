package cloudevents

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/jsonscan"
	"github.com/headgate-io/headgate/internal/race"
)

const (
	minimal = `{"specversion":"1.0","id":"i","source":"/s","type":"t"}`
	needed  = `"specversion":"1.0","id":"i","source":"/s","type":"t"`
)

// read checks and reads one event; the fault is that of the syntax or of the attributes.
func read(data string) (*event.Event, Fault) {
	b := &event.Batch{Events: []event.Event{{Data: []byte(data)}}}
	if f := jsonscan.New(64, nil).Check([]byte(data)); f.Code != "" {
		return nil, Fault{Offset: f.Offset, Detail: string(f.Code)}
	}
	return &b.Events[0], new(Decoder).JSON(b, 0)
}

// text writes attributes as name=value.
func text(e *event.Event) string {
	var all []string
	for _, a := range e.Attrs {
		all = append(all, fmt.Sprintf("%s=%s", a.Name, a.Value))
	}
	return strings.Join(all, " ")
}

func TestJSONAttributes(t *testing.T) {
	e, f := read(` {"data":{"id":1,"id":2},"specversion":"1.0","id":"a\/1","\u0073ource":"/s","type":"t","time":"2018-04-05T17:31:00.25+01:00",` +
		`"subject":null,"extint":-7,"extbool":false,"exttext":"\ud83d\ude00 \"ö\"","partitionkey":"k"}`)
	if f.Detail != "" {
		t.Fatal(f)
	}
	const want = `specversion=1.0 source=/s type=t time=2018-04-05T17:31:00.25+01:00 extint=-7 extbool=false exttext=😀 "ö" partitionkey=k content-type=application/cloudevents+json`
	if got := text(e); got != want {
		t.Errorf("attributes %s\nwant       %s", got, want)
	}
	if string(e.ID) != "a/1" || e.Time != 1522945860_250000000 {
		t.Errorf("id %q, time %d", e.ID, e.Time)
	}
}

func TestJSONFaults(t *testing.T) {
	for _, c := range []struct{ member, name, detail string }{
		{`"id":"j"`, "id", isTwice},
		{`"\u0069d":"j"`, "id", isTwice},
		{`"ext":1,"ext":1`, "ext", isTwice},
		{`"data":1,"data":1`, "data", "is a second value"},
		{`"data_base64":"","data":null`, "data", "is a second value"},
		{`"data_base64":"TWE"`, "data_base64", "base64"},
		{`"data_base64":"TW=E"`, "data_base64", "base64"},
		{`"data_base64":"TWE=\n"`, "data_base64", "base64"},
		{`"data_base64":"` + strings.Repeat("AAAA", 16) + `T==="`, "data_base64", "base64"},
		{`"data_base64":1`, "data_base64", "base64"},
		{`"subject":1`, "subject", mustBeText},
		{`"dataschema":true`, "dataschema", mustBeText},
		{`"time":"2018-04-05"`, "time", badTime},
		{`"ext":{}`, "ext", mustBePlain},
		{`"ext":[1]`, "ext", mustBePlain},
		{`"ext":1.0`, "ext", mustBePlain},
		{`"ext":1e1`, "ext", mustBePlain},
		{`"ext":2147483648`, "ext", mustBePlain},
		{`"Ext":"a"`, "Ext", badName},
		{`"":"a"`, "", badName},
		{`"ext_a":"a"`, "ext_a", badName},
		{`"ext":"a\u0000"`, "ext", badText},
		{`"ext":"\u007f"`, "ext", badText},
		{`"ext":"\u0085"`, "ext", badText},
		{`"ext":"\ufffe"`, "ext", badText},
		{`"ext":"\ufdd0"`, "ext", badText},
		{`"ext":"\ud800"`, "ext", badText},
		{`"ext":"\udc00\ud800"`, "ext", badText},
		{`"ext":"\ud800\ud800"`, "ext", badText},
		{`"ext":"\\\ud800\u0041"`, "ext", badText},
		{`"partitionkey":""`, "partitionkey", isEmpty},
		{`"ext":"` + strings.Repeat("x", MaxBytes) + `"`, "ext", tooLarge},
	} {
		data := "{" + needed + "," + c.member + "}"
		_, f := read(data)
		if string(f.Name) != c.name || !strings.Contains(f.Detail, c.detail) || f.Detail == "" {
			t.Errorf("%.80s: %q %s", c.member, f.Name, f.Detail)
		}
		if f.Offset < len(needed) || f.Offset >= len(data) {
			t.Errorf("%.80s: offset %d", c.member, f.Offset)
		}
	}
	for _, data := range []string{`[]`, `"x"`, `1`, ` null`} {
		if _, f := read(data); f.Detail == "" {
			t.Errorf("%s is taken", data)
		}
	}
}

func TestJSONTakes(t *testing.T) {
	for _, member := range []string{
		`"data_base64":"TWE\/","data64":"x"`, `"data_base64":null,"data":null`, `"data_base64":"` + strings.Repeat("AAAA", 100) + `TQ=="`,
		`"data_base64":""`, `"ext":""`, `"ext":2147483647`, `"ext":-2147483648`, `"ext":"\\ud800"`, `"ext":"\uD83d\uDe00\ufffd"`, `"1":"a"`,
		`"id":null`, `"datacontenttype":"text/plain; charset=latin1"`,
	} {
		if _, f := read("{" + needed + "," + member + "}"); f.Detail != "" {
			t.Errorf("%s: %+v", member, f)
		}
	}
	var many []string
	for i := range MaxAttrs - 3 {
		many = append(many, fmt.Sprintf(`"ext%d":%d`, i, i))
	}
	full := "{" + needed + "," + strings.Join(many, ",")
	if e, f := read(full + "}"); f.Detail != "" || len(e.Attrs) != MaxAttrs+1 {
		t.Errorf("%d attributes: %+v", MaxAttrs, f)
	}
	if _, f := read(full + `,"one":"more"}`); f.Detail != tooMany {
		t.Errorf("one more: %+v", f)
	}
}

// suite is a file of the CloudEvents conformance tests.
type suite struct {
	TestType string
	Tests    []struct {
		ID, TestType string
		Event        json.RawMessage
		Batch        []json.RawMessage
	}
}

func TestConformance(t *testing.T) {
	data := os.Getenv("HEADGATE_DATA")
	if data == "" {
		data = filepath.Join("..", "..", "..", "shared", "data")
	}
	files, err := filepath.Glob(filepath.Join(data, "cloudevents", "format-tests", "format", "json", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("no conformance tests of CloudEvents: HEADGATE_DATA names the folder in which cloudevents is a copy of cloudevents/conformance")
	}
	for _, file := range files {
		doc, err := os.ReadFile(file)
		var s suite
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(doc, &s); err != nil {
			t.Fatal(err)
		}
		for _, c := range s.Tests {
			events := c.Batch
			if c.Event != nil {
				events = []json.RawMessage{c.Event}
			}
			faults := 0
			for _, data := range events {
				if _, f := read(string(data)); f.Detail != "" {
					faults++
				}
			}
			kind := s.TestType
			if c.TestType != "" {
				kind = c.TestType
			}
			if valid := strings.HasPrefix(kind, "Valid"); valid != (faults == 0) {
				t.Errorf("%s, %s: %d of %d events have faults", c.ID, kind, faults, len(events))
			}
		}
		t.Logf("%s: %d tests", filepath.Base(file), len(s.Tests))
	}
}

func TestJSONAllocatesNothingPerEvent(t *testing.T) {
	if race.Enabled {
		t.Skip("pools forget at random under the race detector")
	}
	b, d := &event.Batch{}, new(Decoder)
	data := []byte(`{` + needed + `,"time":"2018-04-05T17:31:00Z","subject":"a\/b","ext":5,"data":{"a":[1,2,3]}}`)
	if n := testing.AllocsPerRun(100, func() {
		b.Reset()
		for i := range 100 {
			b.Events = append(b.Events, event.Event{Data: data})
			if f := d.JSON(b, i); f.Detail != "" {
				t.Fatal(f)
			}
		}
	}); n > 0 {
		t.Errorf("%v allocations for 100 events", n)
	}
}
