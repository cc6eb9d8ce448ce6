package builtin

import (
	"strings"
	"testing"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/jsonscan"
)

// batchOf checks lines as JSON, as ingest does, and returns them as a batch.
func batchOf(t testing.TB, pointer string, lines ...string) *event.Batch {
	t.Helper()
	p, err := jsonscan.ParsePointer(pointer)
	if err != nil {
		t.Fatal(err)
	}
	s := jsonscan.New(64, []jsonscan.Pointer{p})
	b := &event.Batch{Syntax: event.JSON}
	for _, line := range lines {
		if f := s.Check([]byte(line)); f.Code != "" {
			t.Fatalf("%s: %v", line, f)
		}
		b.Events = append(b.Events, event.Event{Data: []byte(line), Fields: s.EventFields()})
	}
	return b
}

func TestKeyByPointer(t *testing.T) {
	tests := []struct {
		line, key string
		has       bool
		code      event.Code
	}{
		{`{"k":"a b"}`, "a b", true, ""},
		{`{"k":"\u0061\n\ud83d\ude00"}`, "a\n😀", true, ""},
		{`{"k":""}`, "", true, ""},
		{`{"k":12.50}`, "12.50", true, ""},
		{`{"k":-1e3}`, "-1e3", true, ""},
		{`{"k":true}`, "true", true, ""},
		{`{"k":null}`, "", false, ""},
		{`{"j":1}`, "", false, ""},
		{`[1]`, "", false, ""},
		{`{"k":{"a":1}}`, "", false, event.KeyNotScalar},
		{`{"k":[]}`, "", false, event.KeyNotScalar},
		{`{"k":1,"k":2}`, "", false, event.DuplicateName},
		{`{"k":1,"\u006b":2}`, "", false, event.DuplicateName},
		{`{"k":"` + strings.Repeat("x", 1024) + `"}`, strings.Repeat("x", 1024), true, ""},
		{`{"k":"` + strings.Repeat("x", 1025) + `"}`, "", false, event.KeyTooLong},
	}
	for _, tt := range tests {
		b := batchOf(t, "/k", tt.line)
		Key{JSON: "/k"}.FillKeys(b)
		e := b.Events[0]
		if tt.code != "" {
			if e.Verdict != event.Rejected || b.Errors[0].Code != tt.code {
				t.Errorf("%s: verdict %v, errors %v; want %s", tt.line, e.Verdict, b.Errors, tt.code)
			}
			continue
		}
		if e.Verdict != event.Keep || e.HasKey != tt.has || string(e.Key) != tt.key {
			t.Errorf("%s: key %q (%v), verdict %v; want %q (%v)", tt.line, e.Key, e.HasKey, e.Verdict, tt.key, tt.has)
		}
	}
}

func TestFaultPointsAtTheValue(t *testing.T) {
	b := batchOf(t, "/k", `{"a":1,"k":[2]}`)
	b.Events[0].Offset = 100
	Key{JSON: "/k"}.FillKeys(b)
	if got, want := b.Errors[0].Offset, 100+len(`{"a":1,"k":`); got != want {
		t.Errorf("offset %d, want %d", got, want)
	}
}

func TestKeyByHeaderThenHeadgateKey(t *testing.T) {
	headers := []event.Attr{{Name: []byte("x-tenant"), Value: []byte("t1")}, {Name: []byte("x-tenant"), Value: []byte("t2")}}
	tests := []struct {
		name    string
		key     Key
		headers []event.Attr
		want    string
		has     bool
	}{
		{"the first of two headers", Key{Header: "x-tenant"}, headers, "t1", true},
		{"header missing: Headgate-Key", Key{Header: "x-other"}, headers, "hk", true},
		{"no extractor: Headgate-Key", Key{}, headers, "hk", true},
		{"pointer without value: Headgate-Key", Key{JSON: "/k"}, headers, "hk", true},
	}
	for _, tt := range tests {
		b := batchOf(t, "/k", `{"a":1}`)
		b.Headers, b.Key, b.HasKey = tt.headers, []byte("hk"), true
		tt.key.FillKeys(b)
		if e := b.Events[0]; e.HasKey != tt.has || string(e.Key) != tt.want {
			t.Errorf("%s: key %q (%v), want %q", tt.name, e.Key, e.HasKey, tt.want)
		}
	}
}

func TestKeysOfPluginsAndOtherVerdictsStay(t *testing.T) {
	b := batchOf(t, "/k", `{"k":1}`, `{"k":{}}`, `{"k":{}}`)
	b.Key, b.HasKey = []byte("hk"), true
	b.Events[0].Key, b.Events[0].HasKey = []byte(""), true
	b.Events[1].Key, b.Events[1].HasKey = []byte("plugin"), true
	b.Events[2].Verdict = event.Filtered
	Key{JSON: "/k", Required: true}.FillKeys(b)
	if got := string(b.Events[0].Key) + "," + string(b.Events[1].Key); got != ",plugin" {
		t.Errorf("keys %q", got)
	}
	if b.Events[2].Verdict != event.Filtered || b.Events[2].HasKey || len(b.Errors) != 0 {
		t.Errorf("a filtered event was touched: %+v %v", b.Events[2], b.Errors)
	}
}

// Case A03: an event without a key on a stream that requires one.
func TestA03RequiredKeyIsMissing(t *testing.T) {
	for _, k := range []Key{{Required: true}, {JSON: "/k", Required: true}, {Header: "x-k", Required: true}, {CE: "subject", Required: true}} {
		b := batchOf(t, "/k", `{"a":1}`)
		k.FillKeys(b)
		if b.Events[0].Verdict != event.Rejected || b.Errors[0].Code != event.KeyRequired {
			t.Errorf("%+v: %v %v", k, b.Events[0].Verdict, b.Errors)
		}
	}
}

func TestKeyByAttribute(t *testing.T) {
	attrs := func(pairs ...string) (all []event.Attr) {
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, event.Attr{Name: []byte(pairs[i]), Value: []byte(pairs[i+1])})
		}
		return all
	}
	for _, tt := range []struct {
		name, ce, request, want string
		id                      []byte
		attrs                   []event.Attr
	}{
		{"the attribute", "subject", "hk", "s", nil, attrs("type", "t", "subject", "s", "partitionkey", "p")},
		{"the id", "id", "hk", "i", []byte("i"), attrs("type", "t")},
		{"the id of what is no CloudEvent", "id", "hk", "hk", []byte("i"), nil},
		{"missing: Headgate-Key", "subject", "hk", "hk", nil, attrs("partitionkey", "p")},
		{"missing: partitionkey", "subject", "", "p", nil, attrs("partitionkey", "p")},
		{"no extractor: partitionkey", "", "", "p", nil, attrs("partitionkey", "p")},
		{"no extractor: Headgate-Key", "", "hk", "hk", nil, attrs("partitionkey", "p")},
		{"none", "subject", "", "", nil, attrs("type", "t")},
	} {
		b := batchOf(t, "", `{}`)
		b.Key, b.HasKey = []byte(tt.request), tt.request != ""
		b.Events[0].ID, b.Events[0].Attrs = tt.id, tt.attrs
		Key{CE: tt.ce}.FillKeys(b)
		if e := b.Events[0]; e.HasKey != (tt.want != "") || string(e.Key) != tt.want {
			t.Errorf("%s: key %q (%v), want %q", tt.name, e.Key, e.HasKey, tt.want)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, k := range []Key{{JSON: "/a", Header: "b"}, {CE: "a", JSON: "/a"}, {CE: "a", Header: "a"}, {Header: "X-Key"}, {JSON: "no-slash"}} {
		if k.Validate() == nil {
			t.Errorf("%+v is taken for valid", k)
		}
	}
	for _, k := range []Key{{}, {JSON: "/a~1b"}, {Header: "x-key", Required: true}, {CE: "subject"}} {
		if err := k.Validate(); err != nil {
			t.Errorf("%+v: %v", k, err)
		}
	}
}

func TestFillKeysDoesNotAllocate(t *testing.T) {
	b := batchOf(t, "/k", `{"k":"abc"}`, `{"k":12}`, `{"k":"\u0061bc"}`, `{"j":1}`)
	b.Key, b.HasKey = []byte("hk"), true
	b.Alloc(1)
	k := Key{JSON: "/k"}
	if n := testing.AllocsPerRun(100, func() {
		for i := range b.Events {
			b.Events[i].HasKey = false
		}
		k.FillKeys(b)
	}); n > 0 {
		t.Errorf("%v allocations a batch", n)
	}
}
