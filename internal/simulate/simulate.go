// Package simulate runs the sketch, the planner and the table over a stream of events on a virtual clock, and plain
// hashing and the choice of two beside them.
package simulate

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/headgate-io/headgate/partitioner"
)

// Tick is how often the planner looks, in virtual time.
const Tick = 100 * time.Millisecond

// Config is what is simulated.
type Config struct {
	Partitions int // the most that there may be
	First      int // that take part at first; 0: all
	Gateways   int // each has a sketch of its own and knows only its own load
	Producers  int
	Rate       float64 // events a second of virtual time
	Ordering   partitioner.Ordering
	Events     int // that are measured
	Warmup     int // that come before them
	Seed       uint64
	Settings   partitioner.Settings           // Ordering is set from above
	Progress   func(done, all int, at *Tally) // called each tick; nil: not at all
}

// Event is one event of a stream: which of its Keys, and what it weighs.
type Event struct {
	Key    int
	Weight float64
}

// Source makes the stream.
type Source interface {
	Keys() []string // all that may come
	Event(n int) Event
}

// simulation is one run.
type simulation struct {
	c          Config
	secret     partitioner.Secret
	keys       []hash
	sources    []uint64 // hashes of the producers
	table      *partitioner.Table
	planner    *partitioner.Planner
	gateways   []gateway
	random     random
	slots      []float64 // weight of this tick
	children   []float64 // the same, by id from the number of slots on
	onTheirWay []int32
	tally      *Tally
}

type hash struct{ hi, lo uint64 }

type gateway struct {
	sketch *partitioner.Sketch
	load   []float64 // what it has sent to each partition, for the choice among the children of a key
	two    []float64 // the same for the choice of two
	turn   uint64
	sent   float64 // in this tick
}

// Run simulates, until it is done or ctx ends.
func Run(ctx context.Context, c Config, from Source) (*Tally, error) {
	s, err := newSimulation(c, from.Keys())
	if err != nil {
		return nil, err
	}
	perTick, all := c.Rate*Tick.Seconds(), c.Warmup+c.Events
	for n, tick := 0, 1; n < all; tick++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for end := min(all, int(float64(tick)*perTick)); n < end; n++ {
			if n == c.Warmup {
				s.tally.measure()
			}
			s.route(from.Event(n))
		}
		if err := s.plan(time.Duration(tick) * Tick); err != nil {
			return nil, err
		}
		if c.Progress != nil {
			c.Progress(n, all, s.tally)
		}
	}
	s.tally.finish(s.table)
	return s.tally, nil
}

func newSimulation(c Config, keys []string) (*simulation, error) {
	s := &simulation{c: c, random: random(c.Seed)}
	for i := range s.secret {
		s.secret[i] = byte(s.random.next())
	}
	table, err := partitioner.NewTable(s.secret, partitioner.SlotsFor(c.Partitions), partitioner.Equal(cmp.Or(c.First, c.Partitions)))
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		hi, lo := partitioner.Hash(s.secret, []byte(k))
		s.keys = append(s.keys, hash{hi, lo})
	}
	for p := range max(1, c.Producers) {
		_, lo := partitioner.Hash(s.secret, fmt.Appendf(nil, "producer %d", p))
		s.sources = append(s.sources, lo)
	}
	for range max(1, c.Gateways) {
		s.gateways = append(s.gateways, gateway{partitioner.NewSketch(partitioner.DefaultCounters), make([]float64, c.Partitions), make([]float64, c.Partitions), 0, 0})
	}
	c.Settings.Ordering = c.Ordering
	s.table, s.planner = table, partitioner.NewPlanner(c.Settings)
	s.slots = make([]float64, table.Slots())
	s.tally = newTally(c, len(keys))
	return s, nil
}

// route sends one event: the real way, by plain hashing, and by the choice of two.
func (s *simulation) route(e Event) {
	r := s.random.next()
	g, k := &s.gateways[r%uint64(len(s.gateways))], s.keys[e.Key]
	g.turn++
	var at partitioner.Place
	if s.c.Ordering == partitioner.Unordered {
		at = s.table.LookupLeast(k.hi, k.lo, g.turn, g.load)
	} else {
		at = s.table.Lookup(k.hi, k.lo, s.sources[(r>>32)%uint64(len(s.sources))])
	}
	for int(at.Partition) >= len(g.load) {
		g.load = append(g.load, 0)
	}
	g.load[at.Partition] += e.Weight
	g.sent += e.Weight
	g.sketch.Add(k.hi, k.lo, e.Weight)
	if at.Child < 0 {
		s.slots[at.Slot] += e.Weight
	} else {
		id := int(at.Child) - s.table.Slots()
		for id >= len(s.children) {
			s.children = append(s.children, 0)
		}
		s.children[id] += e.Weight
	}
	n := uint64(s.c.Partitions)
	first, second := (k.hi>>20)%n, (k.lo>>20)%n
	if g.two[second] < g.two[first] {
		second, first = first, second
	}
	g.two[first] += e.Weight
	s.tally.add(e, at, int((k.hi>>20)%n), int(first))
}

// plan is what happens at the end of a tick.
func (s *simulation) plan(now time.Duration) error {
	load := partitioner.Load{Elapsed: Tick, Slots: s.slots, Children: map[int32]float64{}}
	for i := range s.slots {
		s.slots[i] /= Tick.Seconds()
	}
	for i, w := range s.children {
		if w > 0 {
			load.Children[int32(i+s.table.Slots())] = w / Tick.Seconds()
		}
	}
	reports := make([]partitioner.Report, len(s.gateways))
	for i := range s.gateways {
		g := &s.gateways[i]
		g.sketch.Tick(Tick)
		partitioner.Forget(g.load, 20*g.sent/float64(len(g.load))) // what each gets in 2 s, on average
		g.sent = 0
		reports[i] = g.sketch.Rates(0.05 / float64(s.c.Partitions))
	}
	load.Heavy = partitioner.MergeReports(reports...)
	plan := s.planner.Next(s.table, load, now)
	if err := s.apply(plan); err != nil {
		return err
	}
	s.tally.tick(now, plan)
	clear(s.slots)
	clear(s.children)
	return nil
}

// apply puts a plan in force. What is ordered gets to its new place one tick later: until then it is sealed where it was.
func (s *simulation) apply(plan partitioner.Plan) error {
	next, err := s.table.Apply(plan)
	if err != nil {
		return fmt.Errorf("the planner wants what the table refuses: %w", err)
	}
	if len(s.onTheirWay) > 0 {
		if next, err = next.Commit(s.onTheirWay...); err != nil {
			return err
		}
	}
	s.onTheirWay = s.onTheirWay[:0]
	for _, c := range plan.Changes {
		if c.Kind == partitioner.MoveSlot {
			s.onTheirWay = append(s.onTheirWay, c.Slot)
		}
	}
	if s.c.Ordering == partitioner.Unordered && len(s.onTheirWay) > 0 {
		if next, err = next.Commit(s.onTheirWay...); err != nil {
			return err
		}
		s.onTheirWay = s.onTheirWay[:0]
	}
	s.table = next
	return nil
}

// random is SplitMix64: the same numbers for the same seed, whatever the version of the library.
type random uint64

func (r *random) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	x := uint64(*r)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// float is in [0, 1).
func (r *random) float() float64 { return float64(r.next()>>11) / (1 << 53) }
