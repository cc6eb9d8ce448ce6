package admin

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/headgate-io/headgate/event"
)

// FuzzRow checks that any event is one line of valid JSON that gives its bytes back.
func FuzzRow(f *testing.F) {
	f.Add([]byte("k"), []byte(`{"a":"b"}`))
	f.Add([]byte("\x00\x1f\x7f\""), []byte("line\nline\r\t\\ \u2028 \xff"))
	f.Fuzz(func(t *testing.T, key, data []byte) {
		line := appendRow(nil, "s", &Row{Gateway: "g", Number: 1, HasKey: true, Key: key, Data: data}, 1<<20)
		if bytes.IndexByte(line, '\n') != len(line)-1 {
			t.Fatalf("not one line: %q", line)
		}
		var got struct {
			Key, Data  *string
			KeyBase64  []byte `json:"key_base64"`
			DataBase64 []byte `json:"data_base64"`
		}
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		for _, v := range []struct {
			text *string
			raw  []byte
			want []byte
		}{{got.Key, got.KeyBase64, key}, {got.Data, got.DataBase64, data}} {
			if v.text != nil {
				v.raw = []byte(*v.text)
			}
			if !bytes.Equal(v.raw, v.want) {
				t.Fatalf("%q became %q", v.want, v.raw)
			}
		}
	})
}

func TestRowsAllocateNothing(t *testing.T) {
	r := Row{Gateway: "0123456789abcdef", Number: 1, HasKey: true, Key: []byte("key"), Data: []byte(`{"a":"b"}`)}
	buf := make([]byte, 0, 1<<10)
	if n := testing.AllocsPerRun(100, func() { buf = appendRow(buf[:0], "stream", &r, 1<<20) }); n != 0 {
		t.Errorf("%v allocations a row", n)
	}
}

func TestRowWithAttributes(t *testing.T) {
	r := Row{Gateway: "g", Number: 1, Data: []byte("d"), Attrs: []event.Attr{
		{Name: []byte("reason"), Value: []byte(`answered "422"`)}, {Name: []byte("producer"), Value: []byte("\xff")}, {Name: []byte(`a"b`)}}}
	want := `"attributes":{"reason":"answered \"422\"","producer_base64":"/w==","a\"b":""}`
	for _, limit := range []int{10, 0} { // F04: an event over the limit still says why it is here
		line := appendRow(nil, "s", &r, limit)
		if !json.Valid(line) || !bytes.Contains(line, []byte(want)) {
			t.Errorf("%s lacks %s", line, want)
		}
	}
}
