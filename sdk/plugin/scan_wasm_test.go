//go:build !tinygo

package plugin

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/headgate-io/headgate/sdk/abi"
)

// names are those that made-up texts consist of: of all lengths around 8 and 16, some the beginning or the end of others.
var names = []string{"", "a", "b", "aa", "remote", "respons", "response", "responsf", "remote_ip", "remote_iq", "semote_ip",
	"0123456789abcde", "0123456789abcdef", "0123456789abcdefg", "0123456789ABcdefg", "0123456789abcdef0123456789abcdef0123456789"}

// pieces are what texts are made of; the first few keep them near JSON.
var pieces = []string{`"`, `":`, `":"`, `","`, `,"`, `{"`, `}`, `{`, `[`, `]`, `:`, `,`, ` `, "\n\t\r ", "        ", `\`, `\"`, `\\`, `\u0061`, `""`, `[]`, `{"a":[1,"]"]}`,
	"1", "-12", "true", "12345678901", "\x00", "\x1f", "\x80\xff", "é", `"xxxxxxx"`, `"xxxxxxxx"`, `"xxxxxxxxx\\"`, "0123456789abcdef01234567"}

func madeUp(r *rand.Rand) []byte {
	var text []byte
	if r.IntN(4) == 0 { // anything
		for range r.IntN(20) {
			text = append(text, pieces[r.IntN(len(pieces))]...)
		}
		return text
	}
	text = append(text, '{')
	for i := range r.IntN(12) {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, '"')
		text = append(text, names[r.IntN(len(names))]...)
		text = append(text, `":`...)
		text = append(text, []string{`"x"`, `""`, `"a\n"`, `12`, `-1.5e3`, ` null `, `{"a":{"b":[{}]}}`, `["\\",{}]`, `"xxxxxxxxxxxxxxx"`, "\t\"remote_ip\" "}[r.IntN(10)]...)
	}
	text = append(text, '}')
	for r.IntN(3) == 0 { // broken somewhere
		at, piece := r.IntN(len(text)+1), pieces[r.IntN(len(pieces))]
		text = append(slices.Insert(text, at, []byte(piece)...)[:at+len(piece)], text[at:]...)
		text = text[:r.IntN(len(text)+1)]
	}
	return text
}

// batch puts texts side by side, as they come from the host.
func batch(texts [][]byte) (views [][]byte) {
	data := append(bytes.Join(texts, nil), make([]byte, abi.DataPadding)...)
	g.data = data[:len(data)-abi.DataPadding]
	for _, text := range texts {
		views = append(views, data[:len(text):len(text)])
		data = data[len(text):]
	}
	return views
}

// The look-up in assembly finds what the one in Go finds, on anything.
func TestLookUpInAssembly(t *testing.T) {
	defer func() { g = guest{} }()
	r := rand.New(rand.NewPCG(1, 2))
	found, fast := 0, 0
	for range 20_000 {
		var texts [][]byte
		for range 5 {
			texts = append(texts, madeUp(r))
		}
		g.scanned = nowhere
		for _, text := range batch(texts) {
			want := scan(nil, text)
			for range 4 {
				name := names[r.IntN(len(names))]
				got, want := lookUp(text, name), find(want, text, name)
				if (got == nil) != (want == nil) || got != nil && *got != *want {
					t.Fatalf("%q of %q: %v, want %v", name, text, got, want)
				}
				if got != nil {
					found++
				}
			}
			if g.escapes == 0 {
				fast++
			}
			if !slices.Equal(g.members, want) {
				t.Fatalf("%q: %v, want %v", text, g.members, want)
			}
		}
	}
	if found < 20_000 || fast < 50_000 {
		t.Errorf("%d members found, %d texts scanned in assembly: this tests little", found, fast)
	}
}

// A text that is not of the batch, or only in part, has no readable bytes behind it, and is not remembered.
func TestLookUpOutsideOfTheBatch(t *testing.T) {
	defer func() { g = guest{} }()
	data := []byte(`{"a":"1"}{"a":"2"}`)
	g.data = data[2:12]
	for _, text := range [][]byte{data[:9], data[9:], data, nil, {}} {
		want := find(scan(nil, text), text, "a")
		for range 2 {
			if got := lookUp(text, "a"); (got == nil) != (want == nil) || got != nil && *got != *want {
				t.Errorf("%q: %v, want %v", text, got, want)
			}
			if g.scanned != nowhere {
				t.Errorf("%q is remembered", text)
			}
		}
	}
}
