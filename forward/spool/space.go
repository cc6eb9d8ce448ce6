package spool

import (
	"fmt"
	"math"
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
	left    atomic.Int64 // free bytes when they were last asked for
	before  atomic.Int64 // used by then
	checked atomic.Int64 // when that was, nanoseconds since 1970
}

// freeEvery is how long the free space of the disk is believed, but for what spools have written since.
const freeEvery = 100 * time.Millisecond

// NewSpace returns a space of so many bytes (0: no limit), of which the disk keeps a reserve free; free says how many it
// has (nil: not asked).
func NewSpace(limit, reserve int64, free func() (int64, error)) *Space {
	p := &Space{limit: limit, reserve: reserve, free: free}
	p.left.Store(math.MaxInt64) // until somebody has asked
	return p
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
	now := time.Now().UnixNano()
	if last := p.checked.Load(); now-last > int64(freeEvery) && p.checked.CompareAndSwap(last, now) {
		before := p.used.Load()
		if n, err := p.free(); err == nil {
			p.before.Store(before)
			p.left.Store(n)
		}
	}
	left := p.left.Load()
	if left == math.MaxInt64 {
		return ""
	}
	left -= max(p.used.Load()-p.before.Load(), 0)
	taken := int64(0)
	if p.waiting != nil {
		taken = p.waiting()
	}
	if left-taken < p.reserve {
		return fmt.Sprintf("the disk has %d KiB left, %d KiB wait to be written, and %d KiB are kept free", left>>10, taken>>10, p.reserve>>10)
	}
	return ""
}
