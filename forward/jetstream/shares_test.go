package jetstream_test

import (
	"math/rand/v2"
	"testing"

	"github.com/headgate-io/headgate/forward/jetstream"
)

const gib = 1 << 30

func TestSharesOfIdleStreamsAreEqual(t *testing.T) {
	got := jetstream.Shares(10*gib, []jetstream.Holding{{}, {}, {DeadLetter: true}})
	if got[0] != got[1] || got[0] < 250<<20 || got[2] < 60<<20 || got[2] > got[0]/3 {
		t.Errorf("%v", got)
	}
}

// TestSharesGrowIntoWhatIsUnused: a stream that fills up alone comes to most of the space and leaves the others theirs.
func TestSharesGrowIntoWhatIsUnused(t *testing.T) {
	const total = 10 * gib
	all := []jetstream.Holding{{}, {}}
	before := int64(-1)
	for share := jetstream.Shares(total, all)[0]; share > before+gib/1000; share = jetstream.Shares(total, all)[0] {
		before, all[0].Used = share, share
	}
	got := jetstream.Shares(total, all)
	if got[0] < total*7/10 || got[1] < 64<<20 {
		t.Errorf("%v", got)
	}
}

// TestSharesAreNeverMoreThanAll, whatever streams hold: and each new one finds its quarter.
func TestSharesAreNeverMoreThanAll(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 0))
		total := int64(1) << (20 + r.IntN(30))
		all := make([]jetstream.Holding, r.IntN(80))
		left := total
		for i := range all {
			all[i].DeadLetter = r.IntN(3) == 0
			if r.IntN(2) == 0 {
				all[i].Used = r.Int64N(left + 1)
				left -= all[i].Used
			}
			if r.IntN(4) == 0 {
				all[i].Need = r.Int64N(total)
			}
		}
		shares := jetstream.Shares(total, all)
		sum := int64(0)
		for i, s := range shares {
			sum += s
			if s <= 0 {
				t.Fatalf("seed %d: stream %d has nothing", seed, i)
			}
		}
		if sum > total {
			t.Fatalf("seed %d: %d of %d given away", seed, sum, total)
		}
		if len(all) == 0 {
			continue
		}
		idle := make([]jetstream.Holding, len(all))
		for i := range idle {
			idle[i].DeadLetter = all[i].DeadLetter
		}
		for i, equal := range jetstream.Shares(total, idle) {
			if left := total - used(all); left > total/3 && shares[i] < equal/quartersAndABit {
				t.Fatalf("seed %d: stream %d has %d, its equal share is %d", seed, i, shares[i], equal)
			}
		}
	}
}

// TestSharesGrowToWhatARunNeeds: a run that is larger than the first share goes in, one stream after the other, for as long as
// there is room; and what streams hold is never cut.
func TestSharesGrowToWhatARunNeeds(t *testing.T) {
	const total, run = 16 << 20, 600 << 10
	all := make([]jetstream.Holding, 64)
	for i := range all {
		all[i].DeadLetter = i >= 32
	}
	for stored := 0; ; stored++ {
		for i := range all {
			if all[i].Need = run; all[i].Used > 0 {
				all[i].Need = 0
			}
		}
		shares := jetstream.Shares(total, all)
		at := -1
		for i, s := range shares {
			if s < all[i].Used {
				t.Fatalf("after %d runs stream %d holds %d and is cut to %d", stored, i, all[i].Used, s)
			}
			if all[i].Used == 0 && s >= run && at < 0 {
				at = i
			}
		}
		if at < 0 {
			if stored < 16 { // of 27, a share of each idle stream aside
				t.Errorf("%d runs of %d went into %d", stored, run, total)
			}
			return
		}
		all[at].Used = run
	}
}

// quartersAndABit: sums of floors round down.
const quartersAndABit = 5

func used(all []jetstream.Holding) (n int64) {
	for _, h := range all {
		n += h.Used
	}
	return n
}
