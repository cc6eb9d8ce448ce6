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
			if got, found := s.find(id); found != want || found && got != n {
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

// While the index grows, every id is found in the one before or in the one that there is, those that come and go meanwhile too, and
// none that comes has more than a few others move.
func TestIndexGrowsALittleAtATime(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const most = 20_000
	s := NewSet(most, time.Hour, epoch)
	var there []ID
	place := map[ID]uint32{}
	growing, steps := 0, 0
	for len(there) < most {
		steps++
		if random.IntN(3) == 0 && len(there) > 0 {
			i := random.IntN(len(there))
			id := there[i]
			there[i] = there[len(there)-1]
			there = there[:len(there)-1]
			s.remove(place[id])
			s.pending--
			delete(place, id)
			if _, found := s.find(id); found {
				t.Fatalf("%v is found when it has gone", id)
			}
			continue
		}
		id := ID{random.Uint64(), random.Uint64() &^ 0x70} // not spread evenly
		before := s.moved
		place[id] = s.place(id)
		there = append(there, id)
		s.pending++
		if s.old != nil {
			growing++
			if before > 0 && s.moved > before+pace {
				t.Fatalf("%d slots moved at once", s.moved-before)
			}
		}
		if steps%64 == 0 || s.old != nil && random.IntN(8) == 0 {
			for range 16 {
				id := there[random.IntN(len(there))]
				if n, found := s.find(id); !found || n != place[id] {
					t.Fatalf("%v is not found among %d", id, len(there))
				}
			}
		}
	}
	for _, id := range there {
		if n, found := s.find(id); !found || n != place[id] {
			t.Fatalf("%v is not found in the end", id)
		}
	}
	if growing < most/4 {
		t.Errorf("the index has grown in %d steps", growing)
	}
}
