package spool

import (
	"fmt"
	"sync/atomic"
	"time"
)

// Space is how much all the spools of a process may hold together.
type Space struct {
	limit   int64 // bytes of all; 0: no limit
	reserve int64 // bytes that stay free on the disk
	free    func() (int64, error)
	waiting func() int64 // bytes that were taken and may have to be written; nil: none

	used    atomic.Int64
	tail    atomic.Int64 // of it, what goes when there is no room
	written atomic.Int64 // bytes that were ever written
	asked   atomic.Pointer[measured]
	checked atomic.Int64 // when it was asked for last, nanoseconds since 1970
}

// measured is what the disk said. What the spools write from then on is counted against it, so that it stays true as long as
// nobody else writes much.
type measured struct {
	free  int64
	since int64 // written when it was asked for, or before
}

// How long the free space of the disk is believed, for the sake of what others write: where less than twice the reserve is left,
// as good as not at all.
const (
	freeEvery = 100 * time.Millisecond
	freeNear  = time.Millisecond
)

// NewSpace returns a space of so many bytes (0: no limit), of which the disk keeps a reserve free; free says how many it
// has (nil: not asked).
func NewSpace(limit, reserve int64, free func() (int64, error)) *Space {
	return &Space{limit: limit, reserve: reserve, free: free}
}

// Count has what waiting returns taken into account: bytes that were taken, and may have to be written before any more are.
func (p *Space) Count(waiting func() int64) { p.waiting = waiting }

// Reserve returns how many bytes stay free on the disk.
func (p *Space) Reserve() int64 { return p.reserve }

// Limit returns how many bytes there may be, 0 for no limit.
func (p *Space) Limit() int64 { return p.limit }

// Used returns how many bytes there are.
func (p *Space) Used() int64 { return p.used.Load() }

// segment returns the size of files: the one that is written stays when everything in it is confirmed, and must not be most
// of the space.
func (p *Space) segment() int64 {
	if p.limit == 0 {
		return defaultSegment
	}
	return min(defaultSegment, max(p.limit/16, 1))
}

// spares tells whether the disk has room for n bytes that nobody asked for.
func (p *Space) spares(n int64) bool {
	if p.free == nil {
		return true
	}
	left, taken, known := p.leftNow()
	return known && left-taken-n >= 2*p.reserve
}

// full says why a spool that holds so many bytes may take no more, "" when it may. One alone has half of the space, so
// that a backend that is down leaves the other half to other streams.
// Tails do not count: they go first.
func (p *Space) full(own int64) string { return p.fullWith(own, p.tail.Load()) }

// fullWith is full when so much of what there is can go.
func (p *Space) fullWith(own, tail int64) string {
	switch used := p.used.Load() - tail; {
	case p.limit > 0 && own >= p.limit/2:
		return fmt.Sprintf("it holds %d MiB, half of spool.max_bytes", own>>20)
	case p.limit > 0 && used >= p.limit:
		return fmt.Sprintf("all spools together hold %d MiB, spool.max_bytes", used>>20)
	}
	if p.free == nil {
		return ""
	}
	left, taken, known := p.leftNow()
	if known && left-taken < p.reserve {
		return fmt.Sprintf("the disk has %d KiB left, %d KiB wait to be written, and %d KiB are kept free", left>>10, taken>>10, p.reserve>>10)
	}
	return ""
}

// leftNow returns how many bytes the disk has, and how many will be written; known is false until somebody has asked the disk.
func (p *Space) leftNow() (left, taken int64, known bool) {
	if p.waiting != nil { // before what is written is looked at: a byte that is written meanwhile counts twice rather than never
		taken = p.waiting()
	}
	every := int64(freeEvery)
	if left, known = p.estimate(); known && left-taken < 2*p.reserve {
		every = int64(freeNear)
	}
	now := time.Now().UnixNano()
	if last := p.checked.Load(); now-last <= every || !p.checked.CompareAndSwap(last, now) {
		return left, taken, known
	}
	m := &measured{since: p.written.Load()}
	var err error
	if m.free, err = p.free(); err == nil {
		p.asked.Store(m)
	}
	left, known = p.estimate()
	return left, taken, known
}

// estimate is what the disk said, less what was written since.
func (p *Space) estimate() (left int64, known bool) {
	m := p.asked.Load()
	if m == nil {
		return 0, false
	}
	return m.free - (p.written.Load() - m.since), true
}
