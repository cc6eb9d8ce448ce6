package ingest

import (
	"slices"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/event"
)

func TestD10AmbiguousContentType(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{})
	for _, header := range [][]string{{ndjson, jsonType}, {jsonType, jsonType}, {jsonType + ", application/x-ndjson"}, ceHeaders(jsonType, jsonType)} {
		g.post("1", header...).want(t, 400, event.AmbiguousContentType)
		g.nothing()
	}
}

func TestD12TheAnswerNamesTheTypes(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{settings: Settings{MediaTypes: []string{"application/x-mine"}}})
	for _, header := range [][]string{nil, {"Content-Type: text/weird; a=b"}, {"Content-Type: application/json; charset=latin1"}} {
		r := g.post("1", header...).want(t, 415, event.UnsupportedMediaType)
		for _, name := range []string{"application/json", "application/x-ndjson", ceType[14:], ceBatchType[14:], "application/x-mine"} {
			if !strings.Contains(r.Header.Get("Accept"), name) || !strings.Contains(r.doc.Detail, name) {
				t.Errorf("%v: no %s in Accept %q or detail %q", header, name, r.Header.Get("Accept"), r.doc.Detail)
			}
		}
		if header != nil && !strings.Contains(r.doc.Detail, strings.TrimSuffix(header[0][14:], "; a=b")) {
			t.Errorf("%v: detail %s", header, r.doc.Detail)
		}
	}
	g.nothing()
}

func TestMediaTypesAreComparedWithoutCaseAndParameters(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{})
	for header, want := range map[string][]string{
		"Application/JSON;x=y": {"1"}, "application/x-NDJSON ; charset=\"UTF-8\"": {"1"}, "application/ndjson": {"1"}, "application/jsonl": {"1"},
		"application/jsonlines;charset=utf-8": {"1"}, "Text/Plain": {"1"}, "application/Avro; charset=utf-8": {"1\n"},
	} {
		g.post("1\n", "Content-Type: "+header).want(t, 200, "")
		if got := g.data(); !slices.Equal(got, want) {
			t.Errorf("%s: stored %q", header, got)
		}
	}
}
