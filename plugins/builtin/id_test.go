package builtin

import (
	"bytes"
	"testing"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/jsonscan"
)

func TestIDFromJSON(t *testing.T) {
	pointer, err := jsonscan.ParsePointer("/id")
	if err != nil {
		t.Fatal(err)
	}
	scanner := jsonscan.New(64, []jsonscan.Pointer{{}, pointer})
	long := `"` + string(bytes.Repeat([]byte("x"), MaxID+1)) + `"`
	for _, c := range []struct {
		text, id string
		code     event.Code
	}{
		{`{"id":"a-1"}`, "a-1", ""}, {`{"id":17}`, "17", ""}, {`{"id":"a\u0062"}`, "ab", ""}, {`{"id":true}`, "true", ""},
		{`{"id":null}`, "", ""}, {`{"id":""}`, "", ""}, {`{"x":1}`, "", ""}, {`[1]`, "", ""},
		{`{"id":{}}`, "", event.IDNotScalar}, {`{"id":1,"id":2}`, "", event.DuplicateName}, {`{"id":` + long + `}`, "", event.IDTooLong},
	} {
		b := &event.Batch{Events: []event.Event{{Data: []byte(c.text)}}}
		if fault := scanner.Check(b.Events[0].Data); fault.Code != "" {
			t.Fatal(fault)
		}
		b.Events[0].Fields = scanner.EventFields()
		ID{JSON: "/id"}.Fill(b)
		var code event.Code
		if len(b.Errors) > 0 {
			code = b.Errors[0].Code
		}
		if string(b.Events[0].ID) != c.id || code != c.code || b.HasIDs != (c.id != "") {
			t.Errorf("%s: id %q, code %q, named %v", c.text, b.Events[0].ID, code, b.HasIDs)
		}
	}
}

// The events of one request are never taken for one another.
func TestIDFromHeader(t *testing.T) {
	d := ID{Header: "x-delivery"}
	b := &event.Batch{Headers: []event.Attr{{Name: []byte("x-delivery"), Value: []byte("d1")}}, Events: make([]event.Event, 1)}
	if d.Fill(b); string(b.Events[0].ID) != "d1" || !b.HasIDs {
		t.Errorf("%q", b.Events[0].ID)
	}
	b.Events = make([]event.Event, 2)
	if d.Fill(b); string(b.Events[0].ID) != "d1#0" || string(b.Events[1].ID) != "d1#1" {
		t.Errorf("%q %q", b.Events[0].ID, b.Events[1].ID)
	}
	none := &event.Batch{Events: make([]event.Event, 1)}
	if d.Fill(none); none.HasIDs || none.Events[0].ID != nil {
		t.Error("an id without a header")
	}
	if (ID{JSON: "/a", Header: "b"}).Validate() == nil || (ID{JSON: "a"}).Validate() == nil || d.Validate() != nil {
		t.Error("Validate")
	}
}
