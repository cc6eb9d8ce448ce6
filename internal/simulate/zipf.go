package simulate

import (
	"math"
	"strconv"
)

// Zipf is a synthetic stream: the key of rank i has a share in proportion to 1/i^Z. Drift > 0: each so many events the
// ranks go to the next keys.
type Zipf struct {
	Size  float64 // weight of each event
	Drift int

	random random
	keys   []string
	stay   []float64 // alias method (Walker; Vose): the share of a column that is its own
	alias  []int32
}

// NewZipf returns a stream over keys; any z from 0 on, 1 too.
func NewZipf(z float64, keys int, size float64, seed uint64) *Zipf {
	s := &Zipf{Size: size, random: random(seed), stay: make([]float64, keys), alias: make([]int32, keys)}
	sum := 0.0
	for i := range s.stay {
		s.stay[i] = math.Pow(float64(i+1), -z)
		sum += s.stay[i]
		s.keys = append(s.keys, "key "+strconv.Itoa(i))
	}
	var small, large []int32
	for i := range s.stay {
		s.stay[i] *= float64(keys) / sum
		if s.stay[i] < 1 {
			small = append(small, int32(i))
		} else {
			large = append(large, int32(i))
		}
	}
	for len(small) > 0 && len(large) > 0 {
		l, g := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		s.alias[l] = g
		s.stay[g] -= 1 - s.stay[l]
		if s.stay[g] < 1 {
			large = large[:len(large)-1]
			small = append(small, g)
		}
	}
	for _, i := range append(small, large...) {
		s.stay[i] = 1
	}
	return s
}

// Keys returns the keys.
func (s *Zipf) Keys() []string { return s.keys }

// Event returns the next event.
func (s *Zipf) Event(n int) Event {
	r := s.random.next()
	at := int(r % uint64(len(s.stay)))
	if s.random.float() >= s.stay[at] {
		at = int(s.alias[at])
	}
	if s.Drift > 0 {
		at = (at + n/s.Drift) % len(s.stay)
	}
	return Event{at, s.Size}
}
