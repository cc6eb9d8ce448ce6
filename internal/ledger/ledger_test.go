package ledger

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
)

// A set is what a map would be, in as few ranges as there can be, and is the same when it is read again.
func TestSetIsAMap(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		var s Set
		want := map[uint64]bool{}
		for range 60 {
			from := 1 + r.Uint64N(200)
			to := from + r.Uint64N(4)
			s.Add(from, to)
			for n := from; n <= to; n++ {
				want[n] = true
			}
		}
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var again Set
		if err := json.Unmarshal(text, &again); err != nil {
			t.Fatal(err)
		}
		ranges := 0
		for n := range uint64(210) {
			if s.Has(n) != want[n] || again.Has(n) != want[n] {
				t.Fatalf("seed %d: %d in %s", seed, n, text)
			}
			if want[n] && !want[n-1] {
				ranges++
			}
		}
		if s.Ranges() != ranges {
			t.Errorf("seed %d: %d ranges instead of %d: %s", seed, s.Ranges(), ranges, text)
		}
	}
}

func TestBook(t *testing.T) {
	b, err := Parse(nil)
	if err != nil || b.Has("a", 1) || b.Handed != nil {
		t.Fatal(b, err)
	}
	b.Handed = &Handed{After: []uint64{7}}
	b.Handed.Add("a", 3)
	b.Settle("a", 5, 9)
	b.Settle("b", 2, 2)
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(text)
	if err != nil || !again.Has("a", 5) || again.Has("b", 5) || !again.Handed.Has("a", 3) || again.Handed.Has("b", 3) || again.Handed.After[0] != 7 {
		t.Errorf("%s %v", text, err)
	}
	again.Forget("a", 5)
	again.Forget("c", 5)
	if !again.Has("a", 1) || again.Has("c", 1) || again.Settled["a"].Ranges() != 1 {
		t.Errorf("%+v", again.Settled["a"])
	}
	for _, bad := range []string{`{"settled":{"a":[[0,1]]}}`, `{"settled":{"a":[[3,1]]}}`, `[]`} {
		if _, err := Parse([]byte(bad)); err == nil {
			t.Errorf("%s is a book", bad)
		}
	}
}
