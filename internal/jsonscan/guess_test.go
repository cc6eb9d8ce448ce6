package jsonscan

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// remembering checks that a scanner says of each text what a new one says, whatever it has checked before.
type remembering struct {
	t       testing.TB
	pass    bool
	watch   []Pointer
	scanner *Scanner
}

func newRemembering(t testing.TB, pass bool, pointersOf ...string) *remembering {
	r := &remembering{t: t, pass: pass, watch: pointers(t, pointersOf...)}
	r.scanner = r.fresh()
	return r
}

func (r *remembering) fresh() *Scanner {
	s := New(8, r.watch)
	s.PassUTF8 = r.pass
	return s
}

func (r *remembering) check(src []byte) {
	r.t.Helper()
	old, fresh := r.scanner, r.fresh()
	if got, want := old.Check(src), fresh.Check(src); got != want || want.Code == "" && old.Fields != fresh.Fields {
		r.t.Fatalf("%q: a used scanner says %+v %v, a new one %+v %v", src, got, old.Fields, want, fresh.Fields)
	}
}

func TestGuessesChangeNothing(t *testing.T) {
	texts := []string{
		`{"a":1,"b":2,"c":{"a":3,"b":4}}`, // the same names, deeper and in other order
		`{"b":2,"a":1,"c":{"b":4,"a":3}}`,
		`{"c":{"b":4,"a":3},"a":1,"a":2}`,
		`{"a":1,"a":2,"c":{"b":4,"b":5}}`, // twice
		`{"\u0061":1,"b":2,"c":{"\u0062":3}}`,
		`{"a" :1,"b": 2, "c":{"b":4}}`,
		"{\"\xff\":1,\"b\":2,\"c\":3}", "{\"\xff\":1,\"a\":2,\"c\":3}", "{\"a\x01\":1}",
		`{"a":{"a":{"a":1}},"c":[{"b":1},{"b":2}]}`, `[{"a":1},{"b":2},{"c":{"b":1}}]`,
		`{"a":1`, `{"a":`, `{"a"`, `{"a`, `{"a":1,`, `{"a":1,}`, `{"a":1,"b"}`, `{"a":1 "b":2}`, `{"a"1}`,
		`{"":1,"b":2}`, `{"twelve bytes":1,"b":2}`, `{"13 characters":1,"b":2}`, `{"fourteen bytes":1,"b":2}`,
		"{\"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\":1}", "{\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
		`{"a":1,"b":2,"c":{"a":3,"b":4,"c":{"a":3,"b":4}}}`, `{}`, `1`, ``,
	}
	for _, pass := range []bool{false, true} {
		r := newRemembering(t, pass, "/a", "/c/b")
		for _, first := range texts {
			for _, second := range texts {
				for n := range len(second) + 1 {
					r.check([]byte(first)) // again, since a part of the second may have taught it
					r.check([]byte(second[:n]))
				}
			}
		}
	}
}

// members is an object of random members.
func members(random *rand.Rand, depth int) (text []byte) {
	names := []string{"a", "b", "c", "", "long name of 20 bytes", `\u0061`, "ä", "12345678", "1234567890123", "12345678901234"}
	text = append(text, '{')
	for n := range random.IntN(6) {
		if n > 0 {
			text = append(text, ',')
		}
		text = fmt.Appendf(text, `"%s":`, names[random.IntN(len(names))])
		if depth > 0 && random.IntN(4) == 0 {
			text = append(text, members(random, depth-1)...)
		} else {
			text = append(text, "17"...)
		}
	}
	return append(text, '}')
}

func TestGuessesChangeNothingOfRandomTexts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	r := newRemembering(t, false, "/a", "/b/a")
	for range 100_000 {
		text := members(random, 3)
		r.check(text)
		text[random.IntN(len(text))] = `{}",:a0 \`[random.IntN(9)]
		r.check(text)
	}
	for _, line := range sample(t)[:min(len(sample(t)), 2000)] {
		line = bytes.Clone(line)
		r.check(line)
		if len(line) > 0 {
			line[random.IntN(len(line))] ^= 1 << random.IntN(8)
		}
		r.check(line)
	}
}

func FuzzGuesses(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":{"a":2}}`), []byte(`{"a":1,"b":{"a":2},"a":3}`))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		r := newRemembering(t, false, "/a", "/b/a")
		r.check(first)
		r.check(second)
		r.check(first)
	})
}
