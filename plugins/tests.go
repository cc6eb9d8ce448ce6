package plugins

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/plugins/meter"
	"github.com/headgate-io/headgate/sdk/abi"
)

// Tests are what a module says of itself: events, and what is to become of them. They are in its section abi.TestSection
// and run at the upload.
type Tests struct {
	Config json.RawMessage `json:"config,omitempty"`
	Syntax string          `json:"syntax,omitempty"` // what the events are: json, text or opaque; empty: json
	Tests  []Test          `json:"tests"`
}

// Test is one event. Those with the same headers that follow one another come in one batch.
type Test struct {
	Name        string            `json:"name,omitempty"`
	Event       string            `json:"event,omitempty"`
	EventBase64 []byte            `json:"event_base64,omitempty"` // instead: bytes that are not UTF-8
	Headers     map[string]string `json:"headers,omitempty"`      // of the request; names in lower case
	Expect      Outcome           `json:"expect"`
}

// Outcome is what becomes of one event.
type Outcome struct {
	Verdict    string     `json:"verdict"` // kept, filtered or rejected
	Key        *string    `json:"key"`     // nil: no key
	KeyBase64  []byte     `json:"key_base64,omitempty"`
	Data       *string    `json:"data,omitempty"` // only when it was replaced
	DataBase64 []byte     `json:"data_base64,omitempty"`
	Code       event.Code `json:"code,omitempty"`   // of a rejection
	Reason     *uint8     `json:"reason,omitempty"` // that the plugin gave for it
}

const (
	maxTests     = 1000
	maxTestBytes = 256 << 10
)

// TestsOf returns the tests of a module, nil when it has none.
func TestsOf(wasm []byte) (*Tests, error) {
	doc, err := meter.Custom(wasm, abi.TestSection)
	if err != nil || doc == nil {
		return nil, err
	}
	if len(doc) > maxTestBytes {
		return nil, fmt.Errorf("its section %s has %d bytes, the limit is %d", abi.TestSection, len(doc), maxTestBytes)
	}
	t := &Tests{}
	d := json.NewDecoder(bytes.NewReader(doc))
	d.DisallowUnknownFields()
	if err := d.Decode(t); err != nil {
		return nil, fmt.Errorf("its section %s: %w", abi.TestSection, err)
	}
	return t, t.problem()
}

// Embed returns a copy of a module with these tests instead of those it had.
func (t *Tests) Embed(wasm []byte) ([]byte, error) {
	if err := t.problem(); err != nil {
		return nil, err
	}
	doc, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	if len(doc) > maxTestBytes {
		return nil, fmt.Errorf("the tests have %d bytes, the limit is %d", len(doc), maxTestBytes)
	}
	return meter.WithCustom(wasm, abi.TestSection, doc)
}

func (t *Tests) problem() error {
	if len(t.Tests) > maxTests {
		return fmt.Errorf("%d tests, the limit is %d", len(t.Tests), maxTests)
	}
	if _, ok := t.syntax(); !ok {
		return fmt.Errorf("the syntax of the tests is json, text or opaque, not %q", t.Syntax)
	}
	for i := range t.Tests {
		switch v := t.Tests[i].Expect.Verdict; v {
		case "kept", "filtered", "rejected":
		default:
			return fmt.Errorf("%s: what is expected is kept, filtered or rejected, not %q", t.name(i), v)
		}
	}
	return nil
}

func (t *Tests) syntax() (s event.Syntax, ok bool) {
	switch t.Syntax {
	case "", "json":
		return event.JSON, true
	case "text":
		return event.Text, true
	case "opaque":
		return event.Opaque, true
	}
	return 0, false
}

// name is how test i is called in a report.
func (t *Tests) name(i int) string {
	if name := t.Tests[i].Name; name != "" {
		return fmt.Sprintf("test %d (%s)", i+1, printable([]byte(name)))
	}
	return "test " + strconv.Itoa(i+1)
}

func (t *Test) data() []byte {
	if t.Event == "" {
		return t.EventBase64
	}
	return []byte(t.Event)
}

// OutcomeOf is what became of event i of b, which came with the data that was; fault is why it was refused.
func OutcomeOf(e *event.Event, was []byte, fault event.Error) Outcome {
	o := Outcome{Verdict: e.Verdict.String(), Code: fault.Code}
	if e.Verdict == event.Keep {
		o.Verdict = "kept"
		if e.HasKey {
			o.Key, o.KeyBase64 = textOf(e.Key)
		}
		if !bytes.Equal(e.Data, was) {
			o.Data, o.DataBase64 = textOf(e.Data)
		}
	}
	if _, text, ok := strings.Cut(fault.Detail, reasonMark); ok && fault.Code == event.PluginRejected {
		n, _ := strconv.ParseUint(text, 10, 8)
		reason := uint8(n)
		o.Reason = &reason
	}
	return o
}

// textOf returns text as text and other bytes as they are.
func textOf(p []byte) (text *string, raw []byte) {
	if !utf8.Valid(p) {
		return nil, p
	}
	s := string(p)
	return &s, nil
}

// Meets reports whether o is what was expected. A code or reason that is not expected may be any.
func (o Outcome) Meets(want Outcome) bool {
	if want.Code == "" {
		o.Code = ""
	}
	if want.Reason == nil {
		o.Reason = nil
	}
	return o.String() == want.String()
}

// String is the outcome as JSON.
func (o Outcome) String() string {
	doc, err := json.Marshal(o)
	if err != nil {
		panic("BUG: plugins: marshal outcome: " + err.Error())
	}
	return string(doc)
}
