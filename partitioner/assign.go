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
	table atomic.Pointer[Table]
	// sticky is the turn of the partition for events without a key (upper half) and the bytes it has got in it.
	sticky atomic.Uint64
}

// New returns a Partitioner that starts with t.
func New(t *Table) *Partitioner {
	p := &Partitioner{}
	p.table.Store(t)
	return p
}

// Table returns the table in force.
func (p *Partitioner) Table() *Table { return p.table.Load() }

// Swap puts t in force; batches that are being assigned finish with the table they began with.
func (p *Partitioner) Swap(t *Table) { p.table.Store(t) }

// Assign sets Hash, Slot, Child, Epoch and Partition of the events whose indices are in which, or of all events that
// are kept when which is nil, and the batch's TableVersion, by one table. Events without a key go together to one
// active partition; they have no slot and no epoch. The events of a moving slot get the partition that it leaves:
// whoever moves slots holds them back.
func (p *Partitioner) Assign(b *event.Batch, which []int32) {
	if n := p.place(b, which); n > 0 {
		p.charge(n)
	}
}

// Preview is Assign for a batch that is not forwarded: it sets the same and changes nothing else.
func (p *Partitioner) Preview(b *event.Batch) { p.place(b, nil) }

// place assigns, and returns the bytes of the events without a key.
func (p *Partitioner) place(b *event.Batch, which []int32) (keyless uint64) {
	a := assignment{table: p.table.Load()}
	b.TableVersion = a.table.version
	if len(a.table.splits.all) > 0 {
		_, a.source = Hash(a.table.secret, b.Producer)
	}
	a.keyless = a.table.active[uint32(p.sticky.Load()>>32)%uint32(len(a.table.active))]
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
	source       uint64 // hash of the producer
	keyless      int32  // partition of the events without a key
	keylessBytes uint64
}

func (a *assignment) assign(e *event.Event) {
	if !e.HasKey {
		a.keylessBytes += uint64(len(e.Data)) + 1 // one more, so that empty events move on too
		e.Hash, e.Slot, e.Child, e.Epoch, e.Partition = 0, event.NoSlot, event.NoSlot, 0, a.keyless
		return
	}
	hi, lo := Hash(a.table.secret, e.Key)
	if a.table.hash == Murmur2 {
		hi = a.table.murmur2(e.Key)
	}
	at := a.table.Lookup(hi, lo, a.source)
	e.Hash, e.Slot, e.Child, e.Epoch, e.Partition = hi, at.Slot, at.Child, at.Epoch, at.Partition
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
