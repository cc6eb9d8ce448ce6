package plugin

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func TestJSONString(t *testing.T) {
	tests := []struct {
		text, want string
		ok         bool
	}{
		{`{"k":"v"}`, "v", true},
		{" {\t\"a\" : [ {\"k\":1} , \"]\" ] , \"k\"\n:\r\"v\" } ", "v", true},
		{`{"a":{"k":"x"},"k":"v"}`, "v", true},
		{`{"k":""}`, "", true},
		{`{"k":"a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00\ud83d"}`, "a\"\\/\b\f\n\r\té😀\uFFFD", true},
		{`{"\u006b":"v"}`, "v", true},
		{`{"k\\":"x","\\k":"y","k":"v"}`, "v", true},
		{`{"a":"\\","k":"v"}`, "v", true},
		{`{"a":"\\\"","k":"v"}`, "v", true},
		{`{"a":"12345678","bb":"1234567","ccc":"123456","k":"v"}`, "v", true},
		{`{"k":"v","k":"w"}`, "", false},
		{`{"k":"v","\u006B":"w"}`, "", false},
		{`{"k":"v","a":{"k":1}}`, "v", true},
		{`{"k":1}`, "", false},
		{`{"k":null}`, "", false},
		{`{"kk":"v"}`, "", false},
		{`{}`, "", false},
		{`["k","v"]`, "", false},
		{`"k"`, "", false},
		{``, "", false},
		{`{"k":"v`, "", false},
		{`{"k":"`, "", false},
		{`{"k"}`, "", false},
		{`{"k":}`, "", false},
	}
	for _, tt := range tests {
		got, ok := JSONString([]byte(tt.text), "k")
		if string(got) != tt.want || ok != tt.ok {
			t.Errorf("%s: %q %v, want %q %v", tt.text, got, ok, tt.want, tt.ok)
		}
	}
}

func TestJSONInt(t *testing.T) {
	tests := []struct {
		value string
		want  int64
		ok    bool
	}{
		{"0", 0, true}, {"-0", 0, true}, {"500", 500, true}, {"-12", -12, true},
		{"7", 7, true}, {"12345678", 12345678, true}, {"87654321", 87654321, true}, {"123456789", 123456789, true}, {"-1234567", -1234567, true},
		{"5:0", 0, false}, {"5/0", 0, false}, {"5\xb00", 0, false}, {"\xff\xff\xff", 0, false}, {"00000001", 1, true},
		{"9223372036854775807", math.MaxInt64, true}, {"-9223372036854775808", math.MinInt64, true},
		{"9223372036854775808", 0, false}, {"-9223372036854775809", 0, false}, {"99999999999999999999", 0, false},
		{"1.0", 0, false}, {"1e2", 0, false}, {`"1"`, 0, false}, {"true", 0, false}, {"null", 0, false}, {"[1]", 0, false}, {"-", 0, false},
	}
	for _, tt := range tests {
		for _, text := range []string{`{"a":[],"k":` + tt.value + `}`, `{"k": ` + tt.value + ` , "b":1}`, `{"k":` + tt.value + `}`} {
			if got, ok := JSONInt([]byte(text), "k"); got != tt.want || ok != tt.ok {
				t.Errorf("%s: %d %v, want %d %v", text, got, ok, tt.want, tt.ok)
			}
		}
	}
}

// Within a batch the scan of a text is kept; other texts, and the next batch, are scanned anew.
func TestScanIsKeptForTheBatchOnly(t *testing.T) {
	defer func() { g = guest{} }()
	g.data = []byte(`{"a":"1","b":{"b":"2"}}{"a":"5","b":{"b":"6"}}`)
	first, second := g.data[:23], g.data[23:]
	for range 2 {
		wantMember(t, first, "a", "1")
		wantMember(t, first[13:22], "b", "2")
		wantMember(t, second, "a", "5")
		wantMember(t, []byte(`{"b":"3"}`), "b", "3")
		wantMember(t, second[13:22], "b", "6")
	}
	own := []byte(`{"b":"3","a":"4"}`)
	wantMember(t, own, "b", "3")
	copy(own, `{"a":"3","b":"4"}`)
	wantMember(t, own, "b", "4")
	g.scanned = nowhere // the next batch, in the same place
	copy(second, `{"b":"5","a":{"b":"6"}}`)
	wantMember(t, second, "b", "5")
}

func wantMember(t *testing.T, text []byte, name, want string) {
	t.Helper()
	if got, ok := JSONString(text, name); !ok || string(got) != want {
		t.Errorf("%s of %s: %q %v, want %q", name, text, got, ok, want)
	}
}

const line = `{"time":"2015-05-17T10:05:03.000Z","remote_ip":"10.8.119.127","request":"GET /a.png HTTP/1.1","response":200,"bytes":203023,"referrer":"http://semicomplete.com/","agent":"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_9_1)","n":{"a":[1,"\"]"]}}`

func TestLookUpsDoNotAllocate(t *testing.T) {
	text := []byte(line)
	if n := testing.AllocsPerRun(100, func() {
		JSONInt(text, "response")
		JSONString(text, "remote_ip")
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestTextCutAtEachByte(t *testing.T) {
	for n := range line {
		JSONRaw([]byte(line[:n]), "n")
		JSONString([]byte(line[:n]), "agent")
	}
}

// FuzzJSON compares with encoding/json on valid objects, and looks for panics on all else.
func FuzzJSON(f *testing.F) {
	f.Add([]byte(line), "remote_ip")
	f.Add([]byte(`{"\ud83d\ude00":[{}],"a\\":"\\\"","a":-1.5e+3}`), "a")
	f.Add([]byte(`{"a":1,"a":2, "":""}`), "")
	f.Fuzz(func(t *testing.T, text []byte, name string) {
		defer func() { g = guest{} }()
		raw, ok := JSONRaw(text, name)
		got, isString := JSONString(text, name)
		var members map[string]json.RawMessage
		if json.Unmarshal(text, &members) != nil || members == nil || !json.Valid([]byte(`"`+name+`"`)) || strings.ContainsRune(string(text), '\uFFFD') {
			return
		}
		if want, found := members[name]; ok && (!found || string(raw) != string(want)) {
			t.Errorf("%s of %s: %s, want %s", name, text, raw, want)
		} else if found && !ok && !duplicate(t, text, name) {
			t.Errorf("%s of %s: not found", name, text)
		}
		var s string
		if isString && (json.Unmarshal(raw, &s) != nil || string(got) != s && validUTF8(got)) {
			t.Errorf("%s: %q, want %q", raw, got, s)
		}
	})
}

func validUTF8(p []byte) bool { return strings.ToValidUTF8(string(p), "") == string(p) }

// duplicate reports whether a name occurs more than once at the top level of a JSON object.
func duplicate(t *testing.T, text []byte, name string) bool {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.Token()
	n := 0
	for d.More() {
		key, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		if key == name {
			n++
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			t.Fatal(err)
		}
	}
	return n > 1
}
