package simulate

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/headgate-io/headgate/partitioner"
)

// Outcome is what one way of partitioning came to.
type Outcome struct {
	MaxOverMean float64 `json:"max_over_mean"`
	Imbalance   float64 `json:"imbalance"`   // (max - mean) / all
	Replication float64 `json:"replication"` // partitions that hold a key, the mean over the keys that came
}

// Result is what a simulation prints.
type Result struct {
	Headgate struct {
		Outcome
		Bound        float64 `json:"bound"`         // no better max_over_mean is possible with this ordering
		TimeAveraged float64 `json:"time_averaged"` // imbalance of each second, from the cold start on, the mean
		Splits       int     `json:"splits"`
		Grows        int     `json:"grows"`
		Merges       int     `json:"merges"`
		Moves        int     `json:"moves"`
		LateMoves    int     `json:"late_moves"`         // in the second half of what was measured
		Active       int     `json:"active_partitions"`  // at the end
		Added        int     `json:"added_partitions"`   // how often one began to take part
		Drained      int     `json:"drained_partitions"` // or was given up
		KeysSplit    int     `json:"keys_split"`
		SplitShare   float64 `json:"keys_split_share"` // of the keys that came
	} `json:"headgate"`
	Hashing   Outcome `json:"hashing"`
	TwoChoice Outcome `json:"two_choice"`
	Events    int     `json:"events"`
	Keys      int     `json:"keys"` // that came
	Seconds   float64 `json:"seconds"`
}

// Second is one second of virtual time, for plots.
type Second struct {
	At         time.Duration
	Partitions []float64 // weight of each
	Changes    []partitioner.Change
	Notes      []string
}

// Tally counts while a simulation runs.
type Tally struct {
	Result  Result
	Seconds []Second
	Hottest []Hot // keys that were split, the heaviest first, at the end

	c        Config
	now      []float64 // weight of each partition in this second
	load     []float64 // of all that is measured
	hashing  []float64
	two      []float64
	children map[int32]float64
	keys     []seen
	split    map[[2]uint64]bool
	half     time.Duration
	changes  []partitioner.Change
	notes    []string
	uneven   float64 // sum of the imbalances of the seconds
}

// Hot is a key that is split.
type Hot struct {
	Hi, Lo     uint64
	Partitions int
}

// seen is where the events of a key went.
type seen struct {
	weight        float64
	partitions    [4]uint64 // a bit each
	first, second uint8     // of the choice of two, from 1 on
}

func newTally(c Config, keys int) *Tally {
	n := c.Partitions
	return &Tally{c: c, now: make([]float64, n), load: make([]float64, n), hashing: make([]float64, n), two: make([]float64, n),
		children: map[int32]float64{}, keys: make([]seen, keys), split: map[[2]uint64]bool{},
		half: time.Duration((float64(c.Warmup) + float64(c.Events)/2) / c.Rate * float64(time.Second))}
}

// measure begins what counts: all before was warm-up.
func (t *Tally) measure() {
	clear(t.load)
	clear(t.hashing)
	clear(t.two)
	clear(t.children)
	clear(t.keys)
}

func (t *Tally) add(e Event, at partitioner.Place, hashed, two int) {
	for int(at.Partition) >= len(t.load) {
		t.load, t.now = append(t.load, 0), append(t.now, 0)
	}
	t.now[at.Partition] += e.Weight
	t.load[at.Partition] += e.Weight
	t.hashing[hashed] += e.Weight
	t.two[two] += e.Weight
	if at.Child >= 0 {
		t.children[at.Child] += e.Weight
	}
	k := &t.keys[e.Key]
	k.weight += e.Weight
	k.partitions[at.Partition>>6] |= 1 << (at.Partition & 63)
	switch id := uint8(two) + 1; {
	case k.first == 0:
		k.first = id
	case k.first != id:
		k.second = id
	}
}

// tick takes in what was planned, and closes each second.
func (t *Tally) tick(now time.Duration, p partitioner.Plan) {
	r := &t.Result.Headgate
	for _, c := range p.Changes {
		switch c.Kind {
		case partitioner.SplitKey:
			r.Splits++
			t.split[[2]uint64{c.Hi, c.Lo}] = true
		case partitioner.GrowKey:
			r.Grows++
		case partitioner.MergeKey:
			r.Merges++
		case partitioner.AddPartition, partitioner.ActivatePartition:
			r.Added++
		case partitioner.DrainPartition:
			r.Drained++
		case partitioner.MoveSlot:
			r.Moves++
			if now > t.half {
				r.LateMoves++
			}
		}
	}
	t.changes, t.notes = append(t.changes, p.Changes...), append(t.notes, p.Notes...)
	if now%time.Second != 0 {
		return
	}
	t.uneven += outcome(t.now, 0).Imbalance
	t.Seconds = append(t.Seconds, Second{now, slices.Clone(t.now), t.changes, t.notes})
	t.changes, t.notes = nil, nil
	clear(t.now)
}

func outcome(load []float64, replication float64) Outcome {
	total := 0.0
	for _, l := range load {
		total += l
	}
	if total == 0 {
		return Outcome{1, 0, replication}
	}
	worst, n := slices.Max(load), float64(len(load))
	return Outcome{worst * n / total, (worst - total/n) / total, replication}
}

// Worst is the max over mean of the last whole second.
func (t *Tally) Worst() float64 {
	if len(t.Seconds) == 0 {
		return 1
	}
	return outcome(t.Seconds[len(t.Seconds)-1].Partitions, 0).MaxOverMean
}

// finish computes the result.
func (t *Tally) finish(table *partitioner.Table) {
	held, two, hottest, total := 0.0, 0.0, 0.0, 0.0
	r := &t.Result
	for i := range t.keys {
		k := &t.keys[i]
		if k.weight == 0 {
			continue
		}
		r.Keys++
		total += k.weight
		hottest = max(hottest, k.weight)
		two++
		if k.second != 0 {
			two++
		}
		for _, p := range k.partitions {
			held += float64(bits.OnesCount64(p))
		}
	}
	keys := math.Max(1, float64(r.Keys))
	h := &r.Headgate
	h.Outcome, r.Hashing, r.TwoChoice = outcome(t.load, held/keys), outcome(t.hashing, 1), outcome(t.two, two/keys)
	h.Active = table.Active()
	if t.c.First > 0 && len(t.Seconds) > 0 { // the number changes: only what takes part at the end can be compared
		h.Outcome = outcome(active(table, t.Seconds[len(t.Seconds)-1].Partitions), held/keys)
	}
	h.KeysSplit, h.SplitShare = len(t.split), float64(len(t.split))/keys
	h.Bound = t.bound(hottest, total)
	h.TimeAveraged = t.uneven / math.Max(1, float64(len(t.Seconds)))
	r.Events, r.Seconds = t.c.Events, float64(t.c.Events)/t.c.Rate
	for _, s := range table.Splits() {
		t.Hottest = append(t.Hottest, Hot{s.Hi, s.Lo, len(s.Children)})
	}
	slices.SortStableFunc(t.Hottest, func(a, b Hot) int { return b.Partitions - a.Partitions })
}

// active are the loads of the partitions that take part.
func active(table *partitioner.Table, loads []float64) (all []float64) {
	for p, is := range table.Partitions() {
		if is.State == partitioner.Active && p < len(loads) {
			all = append(all, loads[p])
		}
	}
	return all
}

// bound is the max over mean that no placement gets below: what cannot be divided is on one partition.
func (t *Tally) bound(hottest, total float64) float64 {
	switch t.c.Ordering {
	case partitioner.Unordered:
		return 1
	case partitioner.BySource:
		hottest = 0
		for _, w := range t.children {
			hottest = max(hottest, w)
		}
	}
	return max(1, hottest/max(total, 1)*float64(t.Result.Headgate.Active))
}
