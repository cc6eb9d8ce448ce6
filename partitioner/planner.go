package partitioner

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Ordering is what a stream promises about the order of the events of a key.
type Ordering uint8

// The orderings.
const (
	Strict    Ordering = iota // one order per key: keys are never split
	BySource                  // one order per key and source: keys are split by source
	Unordered                 // none: the events of a split key go to the least loaded of its partitions
)

// String returns the word used in settings.
func (o Ordering) String() string { return [...]string{"strict", "source", "none"}[o] }

// ParseOrdering is the inverse of String.
func ParseOrdering(s string) (o Ordering, ok bool) {
	for o := range Unordered + 1 {
		if o.String() == s {
			return o, true
		}
	}
	return Strict, false
}

// Settings is what a planner aims at. The zero value works: a fixed number of partitions, strict order.
type Settings struct {
	Ordering  Ordering
	Target    float64       // weight a second that a partition is meant to take; 0: no such thing
	Min, Max  int           // bounds of how many partitions are active; between them the load and Target decide. Max 0: as many as there are
	MaxFanout int           // the most partitions of one key; 0: all
	Hold      time.Duration // how long a key stays split at least, and the half-life of its peak; 0: 30 s
}

// Load is what was measured in one tick, all gateways together. Weights are bytes and EventCost an event; rates are
// weights a second.
type Load struct {
	Elapsed  time.Duration     // length of the tick
	Heavy    Report            // rates of the heavy keys
	Slots    []float64         // rate of each slot, without the split keys
	Children map[int32]float64 // rate of each child slot
	Keyless  float64           // rate of what has no key: it is spread over the active partitions as it comes
	Backlog  []time.Duration   // how long each partition needs to confirm what is sealed for it; nil: nothing waits
	Ack      []time.Duration   // how long each partition takes to confirm a frame; 0 or nil: not known
	Lost     []int32           // partitions that cannot be reached
	// Confirmed is what the backend confirms of each partition, weight a second, where that is all it takes: of those whose
	// backlog is long and grows while those of others do not. 0 for the others; nil: none is like that.
	Confirmed []float64
	Refused   map[[2]uint64]float64 // weight a second that was refused of keys with a Limit; not in the rates
}

// Figures of the rules; where they are from is in docs/RATIONALE.md.
const (
	tau          = 0.2       // a key is too big from this share of a partition's capacity on
	leastC       = 256 << 10 // weight a second below which a partition is never called busy
	splitFast    = 2.0       // T, short memory
	splitSlow    = 1.1       // T, long memory
	ticksFast    = 2         // ticks in a row
	ticksSlow    = 3
	mergeBelow   = 0.5  // T
	growBy       = 4    // times, in one tick
	growSlow     = 1.25 // T, each child, long memory
	busy         = 0.5  // of C
	unbalanced   = 1.1  // times the mean
	roundStart   = 1.05
	roundEnd     = 1.01
	roundFit     = 1.025 // what a partition may have after it got a slot
	looseStart   = 1.01  // the same where nothing has an order
	looseEnd     = 1.003
	looseFit     = 1.006
	sigmas       = 3.0
	hold         = 30 * time.Second
	longestHold  = 30 * time.Minute
	holdsNear    = 10 // a key that comes back within so many holds is held for longer
	restOfSlot   = 60 * time.Second
	ticksPerMove = 10 // ticks of the fast path between two of the slow path
	loadHalfLife = 10 * time.Second
	longHalfLife = 30 * time.Second // the same where nothing has an order
)

// Planner decides how a table should change. It has no clock and does no I/O: the same calls give the same plans. It
// is not safe for concurrent use. One that starts with a table in use knows what is in the table's ledger and learns
// the rest within seconds.
type Planner struct {
	s      Settings
	loads  loads
	keys   map[[2]uint64]*keyState
	rest   map[int32]time.Duration // slot -> when it may move again
	ticks  int
	quiet  int // ticks since keys changed
	round  round
	size   elastic
	guards guards
	limits map[[2]uint64]*limited
	over   map[[2]uint64]keyState // keys that bring more than a partition takes, and have no limit yet
}

// keyState is what is remembered of a key from tick to tick.
type keyState struct {
	fast, slow int     // ticks in a row over the thresholds
	peak       float64 // decayed peak of the upper bound
	seen       bool    // in this tick
}

// NewPlanner returns a Planner.
func NewPlanner(s Settings) *Planner {
	if s.Hold == 0 {
		s.Hold = hold
	}
	return &Planner{s: s, loads: loads{memory: s.memory()}, keys: map[[2]uint64]*keyState{}, rest: map[int32]time.Duration{}, guards: newGuards(),
		limits: map[[2]uint64]*limited{}, over: map[[2]uint64]keyState{}}
}

// planning is one call of Next.
type planning struct {
	*Planner
	table *Table
	load  Load
	now   time.Duration
	out   Plan

	ordering Ordering // of the key that is looked at
	// of the smoothed loads, moves that are under way counted as done:
	partition []float64 // weight a second
	solid     []float64 // of it, what stays where the table puts it: the rest is of keys that are spread
	fixed     []float64 // of that, what the children of keys split by source bring: it stays whatever slots move
	fluids    []fluid   // the keys that are spread
	known     map[[2]uint64]Heavy
	room      int     // for more children
	heavy     float64 // share of everything that keys over T have
	level     float64 // load for a weight of 1 when all is even
	capacity  float64 // C
	threshold float64 // T
}

// Next returns what should change in table after a tick with load; now is the time since the epoch of Unix. What it
// plans it counts as done.
func (p *Planner) Next(table *Table, load Load, now time.Duration) Plan {
	if table.hash == Murmur2 {
		return Plan{}
	}
	p.loads.add(table, &load)
	n := &planning{Planner: p, table: table, load: load, now: now.Truncate(time.Millisecond), ordering: p.s.Ordering}
	n.know()
	n.measure()
	n.watch()
	n.planKeys()
	n.planLimits()
	p.ticks++
	if p.quiet++; len(n.out.Changes) > 0 {
		p.quiet = 0
	}
	if p.ticks%ticksPerMove == 0 || p.quiet >= ticksSlow && n.imbalance() > unbalanced {
		n.reach()
	}
	if p.ticks%ticksPerMove == 0 {
		n.planSize()
		n.planWeights()
		if !n.resized() {
			n.planMoves()
		}
	}
	return n.out
}

// resized reports whether other partitions take part, or otherwise, from now on: moves wait until that is in force.
func (n *planning) resized() bool {
	return slices.ContainsFunc(n.out.Changes, func(c Change) bool { return c.Kind >= AddPartition })
}

// know indexes what is known of the keys that are split.
func (n *planning) know() {
	n.known = make(map[[2]uint64]Heavy, len(n.table.splits.all))
	for _, k := range n.load.Heavy.Keys {
		if n.table.splits.find(k.Hi, k.Lo) != nil {
			n.known[[2]uint64{k.Hi, k.Lo}] = k
		}
	}
}

// measure computes the loads under the table as it will be when all moves have ended.
func (n *planning) measure() {
	t := n.table
	n.partition, n.fixed = make([]float64, len(t.partitions)), make([]float64, len(t.partitions))
	for i, s := range t.slots {
		n.partition[s.target] += n.loads.slot(int32(i))
	}
	for i := range t.splits.all {
		s := &t.splits.all[i]
		for _, c := range s.children {
			l := n.loads.child(c.id)
			n.partition[c.target] += l
			if !s.Spread {
				n.fixed[c.target] += l
			}
		}
	}
	n.collect()
	total, weight := 0.0, 0.0
	for _, l := range n.partition {
		total += l
	}
	for _, id := range t.active {
		weight += t.partitions[id].Weight
	}
	n.level = total / weight
	n.capacity = max(total/float64(len(t.active)), n.s.Target, leastC)
	n.threshold = tau * n.capacity
	for _, k := range n.load.Heavy.Keys {
		if max(k.Fast, k.Lower) > n.threshold {
			n.heavy += k.Lower / n.load.Heavy.Total
		}
	}
}

// relative is the load of partition p in relation to its fair share.
func (n *planning) relative(p int32) float64 {
	if n.level == 0 {
		return 1
	}
	return n.partition[p] / (n.level * n.table.partitions[p].Weight)
}

func (n *planning) imbalance() float64 {
	worst := 0.0
	for _, p := range n.table.active {
		worst = max(worst, n.relative(p))
	}
	return worst
}

func (n *planning) change(c Change) { n.out.Changes = append(n.out.Changes, c) }

func (n *planning) note(format string, args ...any) {
	n.out.Notes = append(n.out.Notes, fmt.Sprintf(format, args...))
}

// ordered reports whether a move has to wait for what is under way.
func (n *planning) ordered() bool { return n.s.Ordering != Unordered || n.table.classed }

// memory is the half-life of the loads of slots. Spread keys even out at once what a partition gets more, so that there is time
// to look closely: what is not seen better than by noise cannot be evened out better.
func (s *Settings) memory() time.Duration {
	if s.Ordering == Unordered {
		return min(longHalfLife, max(time.Second, s.Hold))
	}
	return min(loadHalfLife, max(time.Second, s.Hold/3))
}

// loads are smoothed loads of slots and children: sums that fade, and the sum of the weights of the ticks in them, so
// that an average is right from the first tick on.
type loads struct {
	memory        time.Duration // half-life
	slots         []float64
	children      map[int32]float64
	weight, twice float64 // sums of the weights and of their squares
	noise         float64 // variance of a tick of a partition, in relation to its load; the same sum
	nokey         float64 // rates of what has no key; the same sum

	partitions []float64 // what each gets, with the short memory of keys, to compare a key with
	short      float64   // sum of the weights of the ticks in that
}

// add takes a tick in.
func (l *loads) add(t *Table, load *Load) {
	if len(l.slots) != len(t.slots) {
		*l = loads{memory: l.memory, slots: make([]float64, len(t.slots))}
	}
	fade := decay(load.Elapsed, l.memory)
	l.measureNoise(t, load, fade)
	for i := range l.slots {
		l.slots[i] *= fade
		if i < len(load.Slots) {
			l.slots[i] += load.Slots[i]
		}
	}
	children := make(map[int32]float64, len(l.children))
	for _, s := range t.splits.all {
		for _, c := range s.children {
			children[c.id] = l.children[c.id]*fade + load.Children[c.id]
		}
	}
	l.addLately(t, load)
	l.children, l.nokey = children, l.nokey*fade+load.Keyless
	l.weight, l.twice = l.weight*fade+1, l.twice*fade*fade+1
}

// addLately takes a tick in where it went.
func (l *loads) addLately(t *Table, load *Load) {
	fade := decay(load.Elapsed, fastHalfLife)
	for l.short = l.short*fade + 1; len(l.partitions) < len(t.partitions); {
		l.partitions = append(l.partitions, 0)
	}
	for p := range l.partitions {
		l.partitions[p] *= fade
	}
	for i, s := range t.slots[:min(len(t.slots), len(load.Slots))] {
		l.partitions[s.owner] += load.Slots[i]
	}
	for _, s := range t.splits.all {
		for _, c := range s.children {
			l.partitions[c.owner] += load.Children[c.id]
		}
	}
}

// measureNoise compares the tick with what was expected of it.
func (l *loads) measureNoise(t *Table, load *Load, fade float64) {
	l.noise *= fade
	if l.weight == 0 {
		return
	}
	off, all := make([]float64, len(t.partitions)), 0.0
	for i, s := range t.slots {
		expected := l.slots[i] / l.weight
		off[s.owner] -= expected
		all += expected
		if i < len(load.Slots) {
			off[s.owner] += load.Slots[i]
		}
	}
	squares := 0.0
	for _, d := range off {
		squares += d * d
	}
	if all > 0 {
		l.noise += squares / all
	}
}

func (l *loads) slot(n int32) float64   { return l.slots[n] / max(l.weight, 1) }
func (l *loads) keyless() float64       { return l.nokey / max(l.weight, 1) }
func (l *loads) lately(p int32) float64 { return l.partitions[p] / max(l.short, 1) }
func (l *loads) child(id int32) float64 { return l.children[id] / max(l.weight, 1) }

// sigma is the standard deviation of the smoothed load of a partition.
func (l *loads) sigma(load float64) float64 {
	return math.Sqrt(l.noise / max(l.weight, 1) * load * l.twice / max(l.weight*l.weight, 1))
}

// carry counts weight as moved between a slot and the children of a key: else the slot would look loaded by what has left.
func (l *loads) carry(slot int32, rate float64, children ...int32) {
	l.slots[slot] = max(0, l.slots[slot]-rate*l.weight)
	for _, id := range children {
		l.children[id] = rate / float64(len(children)) * l.weight
	}
}
