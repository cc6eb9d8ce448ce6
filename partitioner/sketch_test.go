package partitioner

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const tick = 100 * time.Millisecond

// Whatever happens to several sketches, and in whatever order they are merged: lower <= truth <= upper.
func TestSketchBoundsHoldAfterAnyMerge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counters := 1 << rapid.IntRange(1, 5).Draw(t, "log2 of the counters")
		sketches := make([]*Sketch, rapid.IntRange(1, 4).Draw(t, "sketches"))
		for i := range sketches {
			sketches[i] = NewSketch(counters)
		}
		truth, total := map[uint64]float64{}, 0.0
		for range rapid.IntRange(0, 300).Draw(t, "steps") {
			if rapid.IntRange(0, 30).Draw(t, "tick") == 0 {
				for i := range sketches {
					sketches[i].Tick(tick)
				}
				for k := range truth {
					truth[k] *= decay(tick, slowHalfLife)
				}
				total *= decay(tick, slowHalfLife)
				continue
			}
			key, w := rapid.Uint64Range(0, 40).Draw(t, "key"), rapid.Float64Range(1, 100).Draw(t, "weight")
			rapid.SampledFrom(sketches).Draw(t, "sketch").Add(key, key%7, w) // many fall into the same set
			truth[key] += w
			total += w
		}
		share := rapid.SampledFrom([]float64{0, 0.05}).Draw(t, "share")
		reports := make([]Report, len(sketches))
		for i, s := range sketches {
			reports[i] = s.Report(share)
		}
		all := MergeReports(rapid.Permutation(reports).Draw(t, "order")...)
		nested := all
		if len(reports) > 2 {
			nested = MergeReports(MergeReports(reports[:2]...), MergeReports(reports[2:]...))
		}
		for _, r := range []Report{all, nested} {
			checkBounds(t, r, truth, total)
			if most := total/float64(min(counters, ways)) + share*total; r.Floor > most*(1+1e-9)+1e-9 { // the worst keys are all in one set
				t.Fatalf("floor %v of a total of %v with %d counters", r.Floor, total, counters)
			}
		}
	})
}

func checkBounds(t *rapid.T, r Report, truth map[uint64]float64, total float64) {
	const slack = 1 + 1e-9
	seen := map[uint64]bool{}
	for _, k := range r.Keys {
		seen[k.Hi] = true
		if want := truth[k.Hi]; k.Lower > want*slack+1e-9 || k.Upper*slack+1e-9 < want || k.Lo != k.Hi%7 {
			t.Fatalf("key %d: %v <= %v <= %v does not hold", k.Hi, k.Lower, want, k.Upper)
		}
	}
	for k, want := range truth {
		if !seen[k] && want > r.Floor*slack+1e-9 {
			t.Fatalf("key %d is not named and has %v, over the floor %v", k, want, r.Floor)
		}
	}
	if math.Abs(r.Total-total) > 1e-6*(total+1) {
		t.Fatalf("total %v, want %v", r.Total, total)
	}
}

func TestSketchRatesOfASteadyKey(t *testing.T) {
	s := NewSketch(64)
	for range 300 {
		for range 50 {
			s.Add(1, 1, 20)
		}
		s.Tick(tick)
	}
	k := s.Rates(0).Keys[0]
	for name, got := range map[string]float64{"fast": k.Fast, "lower": k.Lower, "upper": k.Upper} {
		if math.Abs(got-10_000) > 10 {
			t.Errorf("%s: %v a second, want 10000", name, got)
		}
	}
}

// Keys that are all different make no key look heavy, however many they are.
func TestUniqueKeysLookLight(t *testing.T) {
	n := 200_000
	if os.Getenv("HEADGATE_PARTITIONER") != "" {
		n = 10_000_000
	}
	s, rnd := NewSketch(DefaultCounters), rand.New(rand.NewPCG(1, 2))
	for i := range n {
		s.Add(rnd.Uint64(), rnd.Uint64(), 1)
		if i%10_000 == 0 {
			s.Tick(tick)
		}
	}
	s.Tick(tick)
	r := s.Report(0)
	for _, k := range r.Keys {
		if k.Lower > 2 || k.Fast > 2 {
			t.Fatalf("a key that came once has a lower bound of %v, %v", k.Lower, k.Fast)
		}
	}
	if r.Floor > r.Total/DefaultCounters*1.5 {
		t.Errorf("floor %v of %v, %v a counter", r.Floor, r.Total, r.Total/DefaultCounters)
	}
}

func TestSketchDoesNotAllocate(t *testing.T) {
	s, rnd := NewSketch(256), rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		s.Add(rnd.Uint64(), rnd.Uint64(), 1)
	}
	if n := testing.AllocsPerRun(1000, func() { s.Add(rnd.Uint64N(300), 5, 1) }); n != 0 {
		t.Errorf("%v allocations an event", n)
	}
	if n := testing.AllocsPerRun(10, func() { s.Tick(tick) }); n != 0 {
		t.Errorf("%v allocations a tick", n)
	}
}

func BenchmarkSketch(b *testing.B) {
	const events = 1 << 20
	for _, z := range []float64{0, 1.01, 1.4, 2} {
		rnd := rand.New(rand.NewPCG(1, 2))
		keys := make([][2]uint64, events)
		var zipf *rand.Zipf
		if z > 1 {
			zipf = rand.NewZipf(rnd, z, 1, 1<<20-1)
		}
		for i := range keys {
			k := rnd.Uint64N(1 << 20)
			if zipf != nil {
				k = zipf.Uint64()
			}
			keys[i] = [2]uint64{mix(k), mix(k ^ 1<<40)}
		}
		b.Run(fmt.Sprintf("z=%v", z), func(b *testing.B) {
			b.ReportAllocs()
			s := NewSketch(DefaultCounters)
			for i := 0; b.Loop(); i++ {
				k := &keys[i%events]
				s.Add(k[0], k[1], 300)
			}
		})
	}
}
