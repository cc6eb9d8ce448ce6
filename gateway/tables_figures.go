package gateway

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/headgate-io/headgate/partitioner"
)

// figures are what was measured in the last ticks of a stream; it is replaced whole.
type figures struct {
	partitions []float64          // weight a second of each, smoothed
	active     int                // partitions that take part
	heavy      partitioner.Report // rates of the heavy keys
}

// figureMemory is the share of the last tick in what is shown.
const figureMemory = 0.1

// observe keeps what people want to see of a tick, and asks for the names of the keys that they see.
func (a *adaptive) observe(t *partitioner.Table, r *partitioner.Reading) {
	old := a.figures.Load()
	if r.Idle && old.idle() {
		return
	}
	next := &figures{heavy: r.Load.Heavy, active: t.Active(), partitions: make([]float64, len(t.Partitions()))}
	for p := range next.partitions {
		rate := 0.0
		if !r.Idle {
			rate = r.Partitions[p]
		}
		if p < len(old.partitions) {
			rate = old.partitions[p] + figureMemory*(rate-old.partitions[p])
		}
		if next.partitions[p] = rate; rate < 1 {
			next.partitions[p] = 0
		}
	}
	a.figures.Store(next)
	a.names.learn(a.meter, t, &next.heavy, a.stream.limits.Load())
}

func (f *figures) idle() bool {
	return len(f.heavy.Keys) == 0 && !slices.ContainsFunc(f.partitions, func(r float64) bool { return r > 0 })
}

// maxOverMean is the rate of the fullest partition in relation to the mean; 1 when there is nothing.
func (f *figures) maxOverMean() float64 {
	sum, worst := 0.0, 0.0
	for _, r := range f.partitions {
		sum, worst = sum+r, max(worst, r)
	}
	if sum == 0 {
		return 1
	}
	return worst * float64(f.active) / sum
}

// topShare is the share of the heaviest key, at least.
func (f *figures) topShare() float64 {
	if len(f.heavy.Keys) == 0 || f.heavy.Total == 0 {
		return 0
	}
	return f.heavy.Keys[0].Lower / f.heavy.Total
}

// shownKeys is how many heavy keys are shown.
const shownKeys = 64

// keyNames knows the keys behind the hashes of those that are heavy, split or limited.
type keyNames struct {
	mu    sync.Mutex
	known map[[2]uint64]partitioner.Named
	asked int // how many are not known
}

// learn takes over what the meter has found, forgets what is not shown any more, and asks for the rest.
func (k *keyNames) learn(m *partitioner.Meter, t *partitioner.Table, heavy *partitioner.Report, limits *keyLimits) {
	shown := map[[2]uint64]bool{}
	for _, h := range heavy.Keys[:min(len(heavy.Keys), shownKeys)] {
		shown[[2]uint64{h.Hi, h.Lo}] = true
	}
	for _, s := range t.Splits() {
		shown[[2]uint64{s.Hi, s.Lo}] = true
	}
	if limits != nil {
		for id := range limits.all {
			shown[id] = true
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.asked > 0 {
		for _, n := range m.Names() {
			k.known[[2]uint64{n.Hi, n.Lo}] = n
		}
	}
	maps.DeleteFunc(k.known, func(id [2]uint64, _ partitioner.Named) bool { return !shown[id] })
	var unknown [][2]uint64
	for id := range shown {
		if _, ok := k.known[id]; !ok {
			unknown = append(unknown, id)
		}
	}
	if k.asked = len(unknown); k.asked > 0 || len(shown) > 0 {
		m.Want(unknown)
	}
}

// ShownKey is a key as the admin API gives it: its text, or its bytes in base64 where they are none; neither when only
// its hash is known.
type ShownKey struct {
	Key       *string `json:"key"`
	KeyBase64 string  `json:"key_base64,omitempty"`
	KeyBytes  int     `json:"key_bytes,omitempty"` // of a key of which only the beginning is shown
	Hash      string  `json:"hash"`
}

func (k *keyNames) show(hi, lo uint64) ShownKey {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := ShownKey{Hash: fmt.Sprintf("%016x%016x", hi, lo)}
	n, ok := k.known[[2]uint64{hi, lo}]
	if !ok {
		return out
	}
	if n.Size > len(n.Key) {
		out.KeyBytes = n.Size
	}
	if text := string(n.Key); utf8.ValidString(text) {
		out.Key = &text
	} else {
		out.KeyBase64 = base64.StdEncoding.EncodeToString(n.Key)
	}
	return out
}

// changeCounts count what has been done to a table.
type changeCounts struct {
	splits, grows, merges, moves, weights, added, drained, abandoned, fences, fenceTime atomic.Int64
}

func (c *changeCounts) count(kind partitioner.Kind) {
	switch kind {
	case partitioner.SplitKey:
		c.splits.Add(1)
	case partitioner.GrowKey:
		c.grows.Add(1)
	case partitioner.MergeKey:
		c.merges.Add(1)
	case partitioner.MoveSlot:
		c.moves.Add(1)
	case partitioner.SetWeight:
		c.weights.Add(1)
	case partitioner.AddPartition, partitioner.ActivatePartition:
		c.added.Add(1)
	case partitioner.DrainPartition:
		c.drained.Add(1)
	}
}
