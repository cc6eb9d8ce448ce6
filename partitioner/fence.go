package partitioner

import (
	"slices"
	"time"
)

// FenceTime is how long the lanes that are left have to confirm what they hold; then what was begun is abandoned.
const FenceTime = 5 * time.Second

// Fence is the way from a table that has begun something to the one that ends it: all lanes that are left confirm what
// they had, then it is finished, else abandoned. It is a value without clock and I/O; who runs it tells it what happened
// and does what Next says.
type Fence struct {
	gateway string
	table   *Table
	cross   []Crossing
	until   time.Duration
	marks   map[int32]uint64
	before  map[int32][]Predecessor // by a partition that is left
	unnamed []Predecessor
	asked   bool // unnamed is known
	failed  bool
}

// NewFence returns the fence of a table that has something under way, at the time now. A gateway that starts with such a
// table, which another process has begun, does the same.
func NewFence(gateway string, t *Table, now time.Duration) *Fence {
	return &Fence{gateway: gateway, table: t, cross: t.Crossings(), until: now + FenceTime, marks: map[int32]uint64{}, before: map[int32][]Predecessor{}}
}

// Leaves returns the partitions whose lanes have to be sealed: their frames must not get anything more that was routed by
// a table older than Version.
func (f *Fence) Leaves() (all []int32) {
	for _, c := range f.cross {
		all = append(all, c.From)
	}
	return slices.Compact(all)
}

// Version is that of the table that began it.
func (f *Fence) Version() uint64 { return f.table.version }

// Sealed notes that a partition's lane has confirmed all that it held; number is that of the last event, 0 for none.
func (f *Fence) Sealed(partition int32, number uint64) { f.marks[partition] = number }

// Inherits notes what comes before the events of a partition that is left and no frame of it says yet: the new owners have to
// say it, since nothing of that partition may ever come that does. It is asked for before the lane is sealed.
func (f *Fence) Inherits(partition int32, from []Predecessor) { f.before[partition] = from }

// Unnamed notes what lanes were told to follow and no frame of theirs that is stored says yet; the table need not remember the rest.
func (f *Fence) Unnamed(all []Predecessor) { f.unnamed, f.asked = all, true }

// Needs is how many predecessors there may be in the end that no frame names, when lanes have these now.
func Needs(t *Table, unnamed []Predecessor) (n int) {
	n = len(unnamed)
	for _, c := range t.Crossings() {
		n++
		for _, m := range unnamed {
			if m.To == c.From {
				n++
			}
		}
	}
	return n
}

// Failed notes that a lane will not be sealed.
func (f *Fence) Failed() { f.failed = true }

// Step is what is to be done next.
type Step uint8

// The steps.
const (
	Wait   Step = iota // for Sealed, Failed, or the end of the time
	Finish             // all that was left is where it belongs
	Abandon
)

// Next returns what is to be done now. When everything is sealed at the last moment, it is finished.
func (f *Fence) Next(now time.Duration) Step {
	missing := slices.ContainsFunc(f.Leaves(), func(p int32) bool {
		_, ok := f.marks[p]
		return !ok
	})
	switch {
	case !missing:
		return Finish
	case f.failed || now >= f.until:
		return Abandon
	}
	return Wait
}

// Marks are the predecessors of what comes to the new owners.
func (f *Fence) Marks() (all []Predecessor) {
	for _, c := range f.cross {
		if n := f.marks[c.From]; n > 0 {
			all = addMark(all, Predecessor{From: c.From, To: c.To, Gateway: f.gateway, Number: n})
		}
		for _, m := range f.before[c.From] {
			if m.From != c.To && !f.table.remembers(m.From, c.To, m) {
				all = addMark(all, Predecessor{From: m.From, To: c.To, Gateway: m.Gateway, Number: m.Number})
			}
		}
	}
	return all
}

// addMark adds a mark; of the same lanes the higher one counts.
func addMark(all []Predecessor, m Predecessor) []Predecessor {
	for i := range all {
		if o := &all[i]; o.From == m.From && o.To == m.To && o.Gateway == m.Gateway {
			o.Number = max(o.Number, m.Number)
			return all
		}
	}
	return append(all, m)
}

// End returns the table that a step which is not Wait leads to.
func (f *Fence) End(step Step) (*Table, error) {
	if step == Finish {
		t := *f.table
		if f.asked {
			t.forget(f.unnamed)
		}
		return t.Finish(f.Marks())
	}
	return f.table.Abandon()
}
