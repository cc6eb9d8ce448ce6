package jsonscan

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestWatched(t *testing.T) {
	for _, c := range []struct{ name, pointer, src, want string }{
		{"string", "/k", `{"a":1,"k":"my-value"}`, `"my-value"`},
		{"G06 number as it is written", "/id", `{"id":2882429806056571124}`, `2882429806056571124`},
		{"object", "/k", ` {"k" : {"x":1} }`, `{"x":1}`},
		{"array", "/k", `{"k":[1, 2]}`, `[1, 2]`},
		{"null", "/k", `{"k":null}`, `null`},
		{"absent", "/k", `{"kk":1,"K":2,"":3}`, ``},
		{"nested", "/a/b/c", `{"c":0,"b":{"c":0},"a":{"c":0,"b":{"b":0,"c":7}}}`, `7`},
		{"not on the way", "/a/b", `{"b":1,"x":{"a":{"b":2}}}`, ``},
		{"way ends in a scalar", "/a/b", `{"a":3}`, ``},
		{"index", "/a/1", `{"a":["x","y","z"]}`, `"y"`},
		{"index at the top", "/0/k", `[{"k":1},{"k":2}]`, `1`},
		{"digits as a name", "/0", `{"0":5}`, `5`},
		{"no index with leading zeros", "/a/01", `{"a":[1,2]}`, ``},
		{"behind the end", "/a/2", `{"a":[1,2]}`, ``},
		{"empty name", "/", `{"":1}`, `1`},
		{"slash and tilde", "/a~1b~0c", `{"a/b~c":1}`, `1`},
		{"escaped name", "/remote_ip", `{"\u0072emote\u005fip":1}`, `1`},
		{"escaped name, other", "/ab", `{"a\u0063":1}`, ``},
		{"escaped longer than any name", "/a", `{"\u0061\u0061":1}`, ``},
		{"name beyond ASCII", "/ä€", `{"\u00e4€":1}`, `1`},
		{"long name", "/" + strings.Repeat("x", 100), `{"` + strings.Repeat("x", 36) + `":1,"` + strings.Repeat("x", 100) + `":2}`, `2`},
		{"empty pointer", "", `{"":1}`, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := New(64, pointers(t, c.pointer))
			if f := s.Check([]byte(c.src)); f.Code != "" {
				t.Fatal(f)
			}
			if got := string(field(s, []byte(c.src), 0)); got != c.want || s.Fields[0].Duplicate {
				t.Errorf("got %s, %+v", got, s.Fields[0])
			}
		})
	}
}

func TestG09Duplicate(t *testing.T) {
	for _, c := range []struct {
		name, pointer, src string
		duplicate          bool
	}{
		{"(a) the field", "/qty", `{"qty":1,"qty":-1}`, true},
		{"(b) another field", "/id", `{"qty":1,"id":7,"qty":-1}`, false},
		{"on the way", "/a/b", `{"a":{"b":1},"a":0}`, true},
		{"beside the way", "/a/b", `{"a":{"b":1,"c":2,"c":3},"b":1}`, false},
		{"written differently", "/qty", `{"qty":1,"\u0071ty":2}`, true},
		{"in different elements", "/0/a", `[{"a":1},{"a":2}]`, false},
		{"three times", "/a", `{"a":1,"a":1,"a":1}`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := New(64, pointers(t, c.pointer))
			if f := s.Check([]byte(c.src)); f.Code != "" {
				t.Fatal(f)
			}
			if s.Fields[0].Duplicate != c.duplicate {
				t.Errorf("got %+v", s.Fields[0])
			}
		})
	}
}

func TestTwoWatched(t *testing.T) {
	s := New(64, pointers(t, "/a/k", "/a/id"))
	src := []byte(`{"a":{"id":"x1","k":5},"b":{"k":6}}`)
	for range 2 { // the second time nothing may be left over
		if f := s.Check(src); f.Code != "" {
			t.Fatal(f)
		}
		if k, id := string(field(s, src, 0)), string(field(s, src, 1)); k != "5" || id != `"x1"` {
			t.Errorf("got %s, %s", k, id)
		}
	}
	if s.Check([]byte(`{}`)); s.Fields[0].Len != 0 || s.Fields[1].Len != 0 {
		t.Errorf("left over: %+v", s.Fields)
	}
}

func TestParsePointer(t *testing.T) {
	for _, s := range []string{"", "/", "/a", "/a/b", "/a~0~1/0", "/ä"} {
		p, err := ParsePointer(s)
		if err != nil || p.String() != s || p.Empty() != (s == "") {
			t.Errorf("%q: got %q, %v", s, p.String(), err)
		}
	}
	for _, s := range []string{"a", "#/a", "/a~", "/a~2"} {
		if _, err := ParsePointer(s); err == nil {
			t.Errorf("%q: no error", s)
		}
	}
}

func TestUnquote(t *testing.T) {
	for _, quoted := range []string{`""`, `"a"`, `"\"\\\/\b\f\n\r\t"`, `"x\u0041\u00e4\u20acy"`, `"\uD834\uDD1E"`, `"\ud834"`, `"\ud834x"`,
		`"\udd1e\ud834"`, `"\ud834\ud834\udd1e"`, `"\ud834\u0041"`, `"ä€𝄞"`, `"\u0000"`} {
		var want string
		if err := json.Unmarshal([]byte(quoted), &want); err != nil {
			t.Fatal(err)
		}
		if got := Unquote([]byte(">"), []byte(quoted)); string(got) != ">"+want {
			t.Errorf("%s: got %q, want %q", quoted, got[1:], want)
		}
	}
}

// FuzzUnquote compares with the standard library: the text of a string, and the name by which it is found.
func FuzzUnquote(f *testing.F) {
	f.Add(`"\ud834\udd1e\n"`)
	f.Fuzz(func(t *testing.T, quoted string) {
		var want string
		if New(1, nil).Check([]byte(quoted)).Code != "" || json.Unmarshal([]byte(quoted), &want) != nil {
			return
		}
		quoted = strings.TrimSpace(quoted)
		if got := Unquote(nil, []byte(quoted)); string(got) != want {
			t.Fatalf("%s: got %q, want %q", quoted, got, want)
		}
		s := New(1, pointers(t, "/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(want)))
		if s.Check([]byte(`{` + quoted + `:1}`)); s.Fields[0].Len != 1 {
			t.Fatalf("%s is not found by %q", quoted, want)
		}
	})
}
