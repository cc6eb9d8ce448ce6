// Package budget counts bytes that are held against a limit, so that memory is refused before it is taken.
package budget

import (
	"math"
	"sync/atomic"
)

// Budget is a limit with what is held of it. All methods may be called concurrently.
type Budget struct {
	limit  int64
	held   atomic.Int64
	parent *Budget // what is held here is held there too; nil for none
}

// New returns a budget of limit bytes.
func New(limit int64) *Budget { return &Budget{limit: limit} }

// Share returns a budget of at most limit bytes whose reservations count in b as well: a part of the whole that can
// not use up the whole.
func (b *Budget) Share(limit int64) *Budget { return &Budget{limit: limit, parent: b} }

// Reserve takes n bytes and reports true, or takes nothing and reports false when they do not fit.
// One reservation always fits into an empty budget, so that a limit below it slows down and never blocks for good. Into
// an empty share fits one of at most Most bytes, as long as that leaves in the whole what is kept for others.
func (b *Budget) Reserve(n int64) bool {
	held := b.held.Add(n)
	ok := held <= b.limit || held == n
	if ok && b.parent != nil {
		if held <= b.limit {
			ok = b.parent.Reserve(n)
		} else {
			ok = b.parent.spare(n)
		}
	}
	if !ok {
		b.held.Add(-n)
	}
	return ok
}

// spare is Reserve for what is more than its share: a quarter is kept for others.
func (b *Budget) spare(n int64) bool {
	if b.held.Add(n) > b.forOne() {
		b.held.Add(-n)
		return false
	}
	return true
}

func (b *Budget) forOne() int64 { return b.limit - b.limit/4 }

// Most is the largest reservation that a share ever takes. Of a budget that is no share there is none.
func (b *Budget) Most() int64 {
	if b.parent == nil {
		return math.MaxInt64
	}
	return max(b.limit, b.parent.forOne())
}

// Charge takes n bytes whether they fit or not: they are in use.
func (b *Budget) Charge(n int64) {
	b.held.Add(n)
	if b.parent != nil {
		b.parent.Charge(n)
	}
}

// Release gives n reserved bytes back.
func (b *Budget) Release(n int64) {
	if b.held.Add(-n) < 0 {
		panic("BUG: budget: released more than was reserved")
	}
	if b.parent != nil {
		b.parent.Release(n)
	}
}

// Held returns the bytes reserved now.
func (b *Budget) Held() int64 { return b.held.Load() }

// Limit returns the bytes that may be reserved together.
func (b *Budget) Limit() int64 { return b.limit }
