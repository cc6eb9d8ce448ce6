package window

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Ids that all want to be in a few places of the index, which nobody can choose but chance, are found, and nothing else is: also
// farther away than a slot can say, round its end, and while those before them go.
func TestIndexOfIdsWithOneHome(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	s := NewSet(700, time.Hour, epoch)
	there, all := map[ID]uint32{}, []ID{}
	for i := range uint64(700) {
		all = append(all, ID{i, ^uint64(0) - i%3}) // at the end of an index of any size
	}
	check := func() {
		for _, id := range all {
			n, want := there[id]
			if at, found := s.find(id); found != want || found && s.at(at) != n {
				t.Fatalf("%v: found %v, want %v", id, found, want)
			}
		}
	}
	for range 4000 {
		id := all[random.IntN(len(all))]
		if n, found := there[id]; found {
			s.remove(n)
			s.pending--
			delete(there, id)
		} else {
			there[id] = s.place(id)
			s.pending++
		}
		if random.IntN(100) == 0 {
			check()
		}
	}
	for id, n := range there {
		s.remove(n)
		delete(there, id)
	}
	check()
	for slot, v := range s.index {
		if v != 0 {
			t.Fatalf("slot %d has %d in an empty index", slot, v)
		}
	}
}
