package jsonscan

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/headgate-io/headgate/event"
)

// valid has every production of the grammar.
var valid = []string{
	`{"time":"2015-05-17T10:05:43.000Z","remote_ip":"10.8.119.127","response":200,"agent":"Mozilla/5.0 (KHTML, like Gecko)"}`,
	`[{"a":[1,-2,0,3.25,1e5,-1.5E+10,0e-0,[[]],{}]},"\"\\\/\b\f\n\r\t\u00e4\uD834\uDD1E",true,false,null]`,
	" {\t\"a\" : [ 1 , {\r\n\"b\" : \"c\" } ] , \"ä€𝄞\" : \"日本語, längerer Text\" } ",
	`"plain"`, `0`, `-12.5e-3`, `true`, `null`, `[]`, `{}`, `""`, `"\ud800"`, `{"":{"":""}}`,
}

func TestCheckFaults(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, c := range []struct {
		name, src string
		code      event.Code
		offset    int
	}{
		{"D01 second object in a line", `{"a":1}{"a":2}`, event.TrailingData, 7},
		{"D03 lines without newlines", `{"event":"one"}{"event":"two"}{"event":"three"}`, event.TrailingData, 15},
		{"trailing data behind white space", `{} 7`, event.TrailingData, 3},
		{"D06 broken line", `{bad`, event.MalformedJSON, 1},
		{"G01 Latin-1", "{\"event\":\"\xe4\"}", event.InvalidUTF8, 10},
		{"G03 0xff", "{\"m\":\"a\xffb\"}", event.InvalidUTF8, 7},
		{"overlong slash", "[\"\xc0\xaf\"]", event.InvalidUTF8, 2},
		{"surrogate in UTF-8", "[\"ab\xed\xa0\x80\"]", event.InvalidUTF8, 4},
		{"first of two", "[\"\xff\", \"\xfe\"]", event.InvalidUTF8, 2},
		{"bytes outside strings", "[\xe4]", event.MalformedJSON, 1},
		{"malformed wins over what is before it", "[\"\xff\", x]", event.MalformedJSON, 6},
		{"G10 33 levels", deep(33), "", 0},
		{"G10 34 levels", deep(34), "", 0},
		{"G10 64 levels", deep(64), "", 0},
		{"G10 65 levels", deep(65), event.TooDeep, 64},
		{"G10 65 levels of objects", strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65), event.TooDeep, 64 * 5},
		{"G10 too deep and cut off", strings.Repeat("[", 100), event.MalformedJSON, 100},
		{"empty", "", event.MalformedJSON, 0},
		{"blank", " \r\n\t", event.MalformedJSON, 4},
		{"form feed is no white space", "\f{}", event.MalformedJSON, 0},
		{"byte order mark", "\xef\xbb\xbf{}", event.MalformedJSON, 0},
		{"leading zero", `[01]`, event.MalformedJSON, 2},
		{"plus sign", `+1`, event.MalformedJSON, 0},
		{"no digit before the point", `[.5]`, event.MalformedJSON, 1},
		{"no digit behind the point", `[1.]`, event.MalformedJSON, 3},
		{"no digit in the exponent", `[1e+]`, event.MalformedJSON, 4},
		{"minus alone", `[-]`, event.MalformedJSON, 2},
		{"hexadecimal", `0x10`, event.TrailingData, 1},
		{"not a number", `NaN`, event.MalformedJSON, 0},
		{"wrong literal", `[nul]`, event.MalformedJSON, 4},
		{"unknown escape", `"a\x41"`, event.MalformedJSON, 3},
		{"short escape", `"\u00g0"`, event.MalformedJSON, 5},
		{"control character", "\"a\nb\"", event.MalformedJSON, 2},
		{"NUL", "\"12345678\x00\"", event.MalformedJSON, 9},
		{"DEL is no control character of RFC 8259", "\"\x7f\"", "", 0},
		{"comma at the end of an array", `[1,]`, event.MalformedJSON, 3},
		{"comma at the end of an object", `{"a":1,}`, event.MalformedJSON, 7},
		{"no comma", `[1 2]`, event.MalformedJSON, 3},
		{"no colon", `{"a" 1}`, event.MalformedJSON, 5},
		{"name without quotes", `{a:1}`, event.MalformedJSON, 1},
		{"number as a name", `{1:1}`, event.MalformedJSON, 1},
		{"wrong bracket", `[1}`, event.MalformedJSON, 2},
		{"single quotes", `{'a':1}`, event.MalformedJSON, 1},
		{"comment", `[1/**/]`, event.MalformedJSON, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := New(64, nil).Check([]byte(c.src))
			if f.Code != c.code || f.Offset != c.offset || (f.Code != "") != (f.Detail != "") {
				t.Errorf("%q: got %q at %d (%s), want %q at %d", c.src, f.Code, f.Offset, f.Detail, c.code, c.offset)
			}
		})
	}
}

func TestG01G03PassUTF8(t *testing.T) {
	s := New(64, pointers(t, "/m"))
	s.PassUTF8 = true
	src := []byte("{\"m\":\"a\xff\xe4\"}")
	if f := s.Check(src); f.Code != "" {
		t.Fatalf("got %+v", f)
	}
	if got := Unquote(nil, field(s, src, 0)); string(got) != "a\xff\xe4" {
		t.Errorf("bytes changed: %q", got)
	}
}

func TestTruncatedAtEachByte(t *testing.T) {
	s := New(64, pointers(t, "/a"))
	for _, text := range valid {
		src := bytes.TrimSpace([]byte(text))
		if f := s.Check(src); f.Code != "" {
			t.Fatalf("%s: %+v", src, f)
		}
		if c := src[0]; c != '{' && c != '[' && c != '"' {
			continue // a part of a number may be a number
		}
		for n := range src {
			if f := s.Check(src[:n:n]); f.Code != event.MalformedJSON || f.Offset != n {
				t.Errorf("%s: got %+v, want malformed_json at the end", src[:n], f)
			}
		}
	}
}

// agree compares the verdict on src with that of encoding/json.
func agree(t *testing.T, src []byte) {
	t.Helper()
	f := New(1<<20, nil).Check(src)
	want := json.Valid(src) && utf8.Valid(src)
	if (f.Code == "") != want {
		t.Fatalf("%q: got %+v, want valid %v", src, f, want)
	}
	if f.Offset < 0 || f.Offset > len(src) {
		t.Fatalf("%q: offset %d", src, f.Offset)
	}
	lax := New(1<<20, nil)
	lax.PassUTF8 = true
	if f := lax.Check(src); (f.Code == "") != json.Valid(src) {
		t.Fatalf("%q: passing UTF-8 got %+v, want valid %v", src, f, json.Valid(src))
	}
}

func TestMutationsAgreeWithStandardLibrary(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	const interesting = "{}[]\",:\\/ubtrfnaelse0123456789.eE+- \t\n\x00\x1f\x7f\x80\xc3\xa4\xed\xa0\xff"
	seeds := append([]string{}, valid...)
	for _, line := range sample(t) {
		seeds = append(seeds, string(line))
	}
	accepted := 0
	for range 50_000 {
		src := []byte(seeds[rnd.IntN(len(seeds))])
		for range 1 + rnd.IntN(3) {
			if len(src) == 0 {
				break
			}
			at, c := rnd.IntN(len(src)), interesting[rnd.IntN(len(interesting))]
			switch rnd.IntN(4) {
			case 0:
				src[at] = c
			case 1:
				src = append(src[:at], src[at+1:]...)
			case 2:
				src = append(src[:at], append([]byte{c}, src[at:]...)...)
			case 3:
				to := at + rnd.IntN(len(src)-at)
				src = append(src[:to:to], src[at:]...)
			}
		}
		agree(t, src)
		if json.Valid(src) {
			accepted++
		}
	}
	if accepted < 1000 {
		t.Errorf("only %d mutated texts were valid: the comparison says little", accepted)
	}
}

// sample returns lines of the big sample data where they are at hand; the last one is cut off.
func sample(t testing.TB) [][]byte {
	dir := os.Getenv("HEADGATE_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	src, err := os.ReadFile(filepath.Join(dir, "webhooks.ndjson"))
	if err != nil {
		t.Logf("without sample data: %v", err)
		return nil
	}
	return bytes.Split(src[:min(len(src), 100_000)], []byte("\n"))
}

func FuzzCheck(f *testing.F) {
	for _, text := range valid {
		f.Add([]byte(text))
	}
	f.Add([]byte("[\"\xff\\ud8\", 1e, 01, tru]"))
	f.Fuzz(agree)
}

func TestValue(t *testing.T) {
	for _, c := range []struct {
		name, src string
		at, end   int
		code      event.Code
	}{
		{"element", `[ {"k":"x"}, 2]`, 1, 11, ""},
		{"behind it", `[ {"k":"x"}, 2]`, 12, 14, ""},
		{"end known though not UTF-8", "[\"\xff\", 2]", 1, 4, event.InvalidUTF8},
		{"end known though too deep", `[[[["]"]]],2]`, 1, 10, event.TooDeep},
		{"end unknown", `[{"k":}, 2]`, 1, -1, event.MalformedJSON},
		{"nothing there", `[1`, 2, -1, event.MalformedJSON},
	} {
		t.Run(c.name, func(t *testing.T) {
			end, f := New(2, nil).Value([]byte(c.src), c.at)
			if end != c.end || f.Code != c.code {
				t.Errorf("got end %d, %+v", end, f)
			}
		})
	}
}

func TestValueFieldsCountFromTheValue(t *testing.T) {
	s := New(64, pointers(t, "/k"))
	src := []byte(`[{"k":1},  {"k":"xy"}]`)
	end, f := s.Value(src, 9)
	if f.Code != "" || string(src[11:end]) != `{"k":"xy"}` {
		t.Fatalf("end %d, %+v", end, f)
	}
	if got := string(field(s, src[11:end], 0)); got != `"xy"` {
		t.Errorf("field %s", got)
	}
}

func TestNothingIsAllocated(t *testing.T) {
	s := New(64, pointers(t, "/remote_ip", "/a/b"))
	texts := [][]byte{lines(1)[0], []byte(valid[1]), []byte(valid[2]), []byte(`{"\u0061":{"\u0062":1}}`), []byte(`{"a":[1,{]}`),
		bytes.Repeat([]byte("["), 1000), []byte("[\"\xff\"]")}
	if n := testing.AllocsPerRun(100, func() {
		for _, src := range texts {
			s.Check(src)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func field(s *Scanner, src []byte, i int) []byte {
	span := s.Fields[i]
	return src[span.Off : span.Off+span.Len]
}
