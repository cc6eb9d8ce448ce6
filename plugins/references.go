package plugins

import (
	"sync"
	"sync/atomic"
)

// references counts the users of something; the last one frees it. The owner is a user until it retires.
type references struct {
	count  atomic.Int64
	retire func() error // the owner's release; may be called twice
	free   func() error
}

// init makes the caller the owner.
func (r *references) init(free func() error) {
	r.count.Store(1)
	r.free = free
	r.retire = sync.OnceValue(r.release)
}

// acquire adds a user; false means that it is being freed.
func (r *references) acquire() bool {
	for n := r.count.Load(); n > 0; n = r.count.Load() {
		if r.count.CompareAndSwap(n, n+1) {
			return true
		}
	}
	return false
}

func (r *references) release() error {
	switch n := r.count.Add(-1); {
	case n == 0:
		return r.free()
	case n < 0:
		panic("BUG: plugins: released more than was acquired")
	}
	return nil
}
