package partitioner

import (
	"sync/atomic"

	"github.com/headgate-io/headgate/event"
)

// stickyBytes is how much data without a key goes to one partition before the next one gets it: enough for frames
// that compress well, little enough to spread.
const stickyBytes = 64 << 10

// Partitioner applies the table in force to batches. All methods may be called concurrently.
type Partitioner struct {
	force atomic.Pointer[force]
	meter *Meter // nil: nothing is counted
	// sticky is the turn of the partition for events without a key (upper half) and the bytes it has got in it.
	sticky atomic.Uint64
}

// force is a table while it is in force.
type force struct {
	table *Table
	over  chan struct{} // closed when it is in force no more
}

// New returns a Partitioner that starts with t. What it assigns is counted in m; nil: nowhere.
func New(t *Table, m *Meter) *Partitioner {
	p := &Partitioner{meter: m}
	p.force.Store(&force{t, make(chan struct{})})
	return p
}

// Table returns the table in force.
func (p *Partitioner) Table() *Table { return p.force.Load().table }

// Swap puts t in force; batches that are being assigned finish with the table they began with.
func (p *Partitioner) Swap(t *Table) {
	close(p.force.Swap(&force{t, make(chan struct{})}).over)
}

// Newer returns a channel that is closed when a table newer than version is in force, nil when one is.
func (p *Partitioner) Newer(version uint64) <-chan struct{} {
	if f := p.force.Load(); f.table.version <= version {
		return f.over
	}
	return nil
}

// Assign sets Hash, Slot, Child, Epoch and Partition of the events whose indices are in which, or of all events that
// are kept when which is nil, and the batch's TableVersion, by one table. Events without a key go together to one
// active partition; they have no slot and no epoch. Events that the table holds back (see Begin) get the partition
// event.Parked: the caller assigns them again by a newer table. With which nil the events are counted.
func (p *Partitioner) Assign(b *event.Batch, which []int32) {
	a := p.begin(b)
	if p.meter != nil {
		a.shard = p.meter.take(a.table)
		defer a.shard.mu.Unlock()
		if a.counts = which == nil; a.counts {
			a.wanted, a.sketch = p.meter.wanted.Load(), a.shard.sketchOf(b.Class, p.meter.counters)
			a.shard.counted = true
		}
	}
	if n := p.place(&a, b, which); n > 0 {
		p.charge(n)
		if a.counts {
			a.shard.gone[a.keyless] += float64(n)
			a.shard.keyless += float64(n)
			a.shard.sent[a.keyless] += float64(n)
		}
	}
}

// Preview is Assign for a batch that is not forwarded: it sets the same and changes nothing else.
func (p *Partitioner) Preview(b *event.Batch) {
	a := p.begin(b)
	p.place(&a, b, nil)
}

// begin sets what holds for all events of a batch.
func (p *Partitioner) begin(b *event.Batch) assignment {
	a := assignment{table: p.force.Load().table}
	b.TableVersion, a.secret = a.table.version, classSecret(a.table.secret, b.Class)
	if len(a.table.splits.all) > 0 {
		_, a.source = Hash(a.table.secret, b.Producer)
	}
	a.keyless = a.table.active[uint32(p.sticky.Load()>>32)%uint32(len(a.table.active))]
	return a
}

// place assigns, and returns the bytes of the events without a key.
func (p *Partitioner) place(a *assignment, b *event.Batch, which []int32) (keyless uint64) {
	if which == nil {
		for i := range b.Events {
			if b.Events[i].Verdict == event.Keep {
				a.assign(&b.Events[i])
			}
		}
	}
	for _, i := range which {
		a.assign(&b.Events[i])
	}
	return a.keylessBytes
}

// assignment is what holds for all events of one batch.
type assignment struct {
	table        *Table
	secret       Secret // of the keys' class
	sketch       *Sketch
	source       uint64 // hash of the producer
	keyless      int32  // partition of the events without a key
	keylessBytes uint64
	shard        *shard  // nil: nothing is counted, and equals do not take turns
	counts       bool    // it is counted
	wanted       *wanted // keys to remember, nil for none
}

func (a *assignment) assign(e *event.Event) {
	if !e.HasKey {
		a.keylessBytes += uint64(len(e.Data)) + 1 // one more, so that empty events move on too
		e.Hash, e.Slot, e.Child, e.Epoch, e.Partition = 0, event.NoSlot, event.NoSlot, 0, a.keyless
		return
	}
	hi, lo := Hash(a.secret, e.Key)
	if a.table.hash == Murmur2 {
		hi = a.table.murmur2(e.Key)
	}
	at := a.lookup(hi, lo)
	e.Hash, e.Slot, e.Child, e.Epoch, e.Partition = hi, at.Slot, at.Child, at.Epoch, at.Partition
	if a.counts {
		weight := float64(len(e.Data) + EventCost)
		a.sketch.Add(hi, lo, weight)
		a.shard.count(weight, &at)
		if a.wanted != nil && a.wanted.has(hi, lo) {
			a.shard.name(hi, lo, e.Key)
		}
	}
	if a.table.held != nil && a.table.held.has(hi, lo, &at) {
		e.Partition = event.Parked
	}
}

// lookup is Lookup, or LookupLeast for a key that is spread.
func (a *assignment) lookup(hi, lo uint64) Place {
	if a.shard == nil || !a.table.splits.spread {
		return a.table.Lookup(hi, lo, a.source)
	}
	s := a.table.splits.find(hi, lo)
	if s == nil || !s.Spread {
		return a.table.Lookup(hi, lo, a.source)
	}
	a.shard.turns++
	return a.table.least(s, a.shard.turns, a.shard.sent)
}

// charge adds n bytes to the turn and begins the next one when it is full. Turns are counted, not bytes: else
// batches of a certain size would always meet the same partition.
func (p *Partitioner) charge(n uint64) {
	for {
		old := p.sticky.Load()
		turn, used := old>>32, old&(1<<32-1)+n
		if used >= stickyBytes {
			turn, used = turn+1, 0
		}
		if p.sticky.CompareAndSwap(old, turn<<32|used) {
			return
		}
	}
}
