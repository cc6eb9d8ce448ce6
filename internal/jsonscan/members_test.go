package jsonscan

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func membersOf(src string) (all []string) {
	for m := MembersOf([]byte(src)); m.Next(); {
		if src[m.At:][:len(m.Value)] != string(m.Value) {
			return append(all, "wrong offset")
		}
		all = append(all, fmt.Sprintf("%s=%s", m.Name, m.Value))
	}
	return all
}

func TestMembers(t *testing.T) {
	for src, want := range map[string]string{
		`{}`:       ``,
		" \n{ }\t": ``,
		`{"a":1}`:  `"a"=1`,
		` { "a" : [1,{"b":"]}"}] , "b\"":"\\","c":-1.5e3 , "d":null} `: `"a"=[1,{"b":"]}"}] "b\""="\\" "c"=-1.5e3 "d"=null`,
		`{"a":"\"}","b":{"a":{}},"c":true,"d":[],"e":"ö"}`:             `"a"="\"}" "b"={"a":{}} "c"=true "d"=[] "e"="ö"`,
	} {
		if got := strings.Join(membersOf(src), " "); got != want {
			t.Errorf("%s: %s, want %s", src, got, want)
		}
	}
}

// Whatever it is given, going over members ends; of a valid object it finds what the standard library finds.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{`{"a":1,"b":[{"c":"}"}],"d":"\\\""}`, `{"a`, `{"a":`, `{"a":"\`, `}`, `{"a":1]`, `{"a"1}`, ``} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		found := map[string]string{}
		n := 0
		for m := MembersOf(src); m.Next(); n++ {
			if n > len(src) {
				t.Fatal("it does not end")
			}
			if string(src[m.At:m.At+len(m.Value)]) != string(m.Value) {
				t.Fatalf("value %q is not at %d", m.Value, m.At)
			}
			found[string(m.Name)] = string(m.Value)
		}
		var want map[string]json.RawMessage
		if f := New(64, nil).Check(src); f.Code != "" || json.Unmarshal(src, &want) != nil || want == nil {
			return
		}
		byName := map[string]string{}
		for name, value := range found {
			byName[string(Unquote(nil, []byte(name)))] = value
		}
		for name, value := range want {
			if got := byName[name]; got != string(value) && n == len(want) {
				t.Errorf("%q is %s, want %s", name, got, value)
			}
		}
		if n < len(want) {
			t.Errorf("%d members of %d", n, len(want))
		}
	})
}
