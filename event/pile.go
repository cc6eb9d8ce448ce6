package event

import (
	"math/bits"
	"sync"
	"unsafe"
)

// Payer is asked for memory before a batch grows.
type Payer interface {
	Pay(n int64) *Problem // nil: so many bytes may be taken
	Refund(n int64)
}

// Arrays come in sizes of 16, 64, 256 ... 16384 elements. Larger ones are as large as asked for, and not kept.
const (
	smallestPile = 4
	pileSizes    = 6
	largestPile  = 1 << (smallestPile + 2*(pileSizes-1))
)

// pile is an array that goes round.
type pile[T any] struct{ items []T }

// shelf keeps piles by size.
type shelf[T any] [pileSizes]sync.Pool

var (
	eventPiles shelf[Event]
	attrPiles  shelf[Attr]
)

// pileSize is the number of elements of the array that take returns.
func pileSize(n int) int {
	if n > largestPile {
		return n
	}
	return 1 << (smallestPile + 2*pileClass(n))
}

func pileClass(n int) int {
	return (max(bits.Len(uint(max(n, 1)-1)), smallestPile) - smallestPile + 1) / 2
}

// take returns an empty array for n elements.
func (s *shelf[T]) take(n int) *pile[T] {
	if n <= largestPile {
		if p, ok := s[pileClass(n)].Get().(*pile[T]); ok {
			return p
		}
	}
	return &pile[T]{make([]T, 0, pileSize(n))}
}

// give takes back an array of which the first n elements were used.
func (s *shelf[T]) give(p *pile[T], n int) {
	if cap(p.items) > largestPile {
		return
	}
	clear(p.items[:n])
	p.items = p.items[:0]
	s[pileClass(cap(p.items))].Put(p)
}

// What is paid for an event: its place in the list, and in those that are made of it on its way, of 4 to 9 bytes each.
const (
	eventSize = int64(unsafe.Sizeof(Event{})) + 24
	attrSize  = int64(unsafe.Sizeof(Attr{}))
)

// Pay asks for n bytes on behalf of b. What is not granted is remembered: see Unpaid.
func (b *Batch) Pay(n int64) *Problem {
	if b.Payer == nil {
		return nil
	}
	p := b.Payer.Pay(n)
	if p != nil && b.unpaid == nil {
		b.unpaid = p
	}
	return p
}

// Unpaid returns why memory that b has taken was not granted, nil when all was: who takes some for many events asks now and
// then, and gives b up.
func (b *Batch) Unpaid() *Problem { return b.unpaid }

// Room makes room for n events in all.
func (b *Batch) Room(n int) *Problem {
	if n <= cap(b.Events) {
		if b.pile == nil || b.paid {
			return nil
		}
		n = cap(b.Events)
	}
	if p := b.Pay(int64(pileSize(n)) * eventSize); p != nil {
		return p
	}
	if n == cap(b.Events) { // kept by Reset
		b.paid = true
		return nil
	}
	next := eventPiles.take(n)
	all := append(next.items, b.Events...)
	b.giveEvents()
	b.pile, b.Events, b.paid = next, all, true
	return nil
}

// Next adds an event, empty, for which there is Room, and returns it. What is behind the list is always empty: Reset and those who
// give an array back clear what they used of it. Writing a whole event here was a fifteenth of decoding.
func (b *Batch) Next() *Event {
	n := len(b.Events)
	b.Events = b.Events[:n+1]
	return &b.Events[n]
}

// refundEvents gives back what was paid for the list of events.
func (b *Batch) refundEvents() {
	if b.paid && b.Payer != nil {
		b.Payer.Refund(int64(cap(b.Events)) * eventSize)
	}
	b.paid = false
}

// giveEvents gives the list of events back.
func (b *Batch) giveEvents() {
	if b.pile == nil {
		return
	}
	b.refundEvents()
	eventPiles.give(b.pile, len(b.Events))
	b.pile, b.Events = nil, nil
}

// attrs hands out pieces of arrays; earlier pieces stay valid when it grows, so that all of it is paid for.
type attrs struct {
	piles []*pile[Attr]
	used  []int // of the piles
	free  []Attr
}

// first and most attributes of one array.
const (
	firstAttrs = 256
	mostAttrs  = largestPile
)

// KeepAttrs returns a copy of list that lives as long as the batch; the names and values in it stay whose they are.
func (b *Batch) KeepAttrs(list []Attr) []Attr {
	a := &b.attrs
	if len(list) > len(a.free) {
		n := firstAttrs
		if last := len(a.piles) - 1; last >= 0 {
			a.used[last] -= len(a.free)
			n = min(4*cap(a.piles[last].items), mostAttrs)
		}
		n = max(n, len(list))
		b.Pay(int64(pileSize(n)) * attrSize)
		next := attrPiles.take(n)
		a.piles, a.used = append(a.piles, next), append(a.used, cap(next.items))
		a.free = next.items[:cap(next.items)]
	}
	kept := a.free[:len(list):len(list)]
	copy(kept, list)
	a.free = a.free[len(list):]
	return kept
}

// reset gives all back.
func (a *attrs) reset() {
	if last := len(a.piles) - 1; last >= 0 {
		a.used[last] -= len(a.free)
	}
	for i, p := range a.piles {
		attrPiles.give(p, a.used[i])
		a.piles[i] = nil
	}
	a.piles, a.used, a.free = a.piles[:0], a.used[:0], nil
}
