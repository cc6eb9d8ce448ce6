// Package ledger remembers which letters of a dead letter are settled, and which were handed over last.
package ledger

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
)

// Set is a set of numbers, kept as ranges. The zero value is empty.
type Set struct{ ranges []span } // ascending, with a gap between any two

// span is the numbers from one to another, both included.
type span struct{ from, to uint64 }

// search returns the place of the first range that ends at n or later.
func (s *Set) search(n uint64) int {
	return sort.Search(len(s.ranges), func(i int) bool { return s.ranges[i].to >= n })
}

// Has reports whether n is in the set. A nil set is empty.
func (s *Set) Has(n uint64) bool {
	if s == nil {
		return false
	}
	i := s.search(n)
	return i < len(s.ranges) && s.ranges[i].from <= n
}

// Add adds the numbers from one to another, both included; from is not 0.
func (s *Set) Add(from, to uint64) {
	if from > to {
		return
	}
	i := s.search(from - 1) // a range that ends right before is grown
	j := i
	for ; j < len(s.ranges) && s.ranges[j].from <= to+1; j++ {
		from, to = min(from, s.ranges[j].from), max(to, s.ranges[j].to)
	}
	s.ranges = slices.Replace(s.ranges, i, j, span{from, to})
}

// Ranges returns of how many ranges the set consists.
func (s *Set) Ranges() int { return len(s.ranges) }

// MarshalJSON writes the ranges: [[1,5],[9,9]].
func (s Set) MarshalJSON() ([]byte, error) {
	pairs := make([][2]uint64, 0, len(s.ranges))
	for _, r := range s.ranges {
		pairs = append(pairs, [2]uint64{r.from, r.to})
	}
	return json.Marshal(pairs)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Set) UnmarshalJSON(text []byte) error {
	var pairs [][2]uint64
	if err := json.Unmarshal(text, &pairs); err != nil {
		return err
	}
	*s = Set{}
	for _, p := range pairs {
		if p[0] == 0 || p[0] > p[1] {
			return fmt.Errorf("a range from %d to %d", p[0], p[1])
		}
		s.Add(p[0], p[1])
	}
	return nil
}
