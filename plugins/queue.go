package plugins

import (
	"slices"
	"sync/atomic"
	"time"
)

// queue decides who gets the next instance when there are more requests than instances: the caller whose calls have taken
// the least time since there was a queue. So a caller whose events are slow, or who has many requests, waits for itself, and
// others wait for at most the calls that are under way. It is guarded by the mutex of its pool, but for length.
type queue struct {
	waiting []*waiter
	used    map[uint64]time.Duration // by caller, since the first of waiting came; nobody else's is known
	floor   time.Duration            // the least that a caller may have used who comes now: what the last one had who was served
	length  atomic.Int32
}

// waiter is one request that waits for an instance.
type waiter struct {
	caller uint64
	got    chan *instance // holds what it is given, nil for one that is to be made
}

// join adds a request of a caller.
func (q *queue) join(caller uint64) *waiter {
	w := &waiter{caller, make(chan *instance, 1)}
	q.waiting = append(q.waiting, w)
	if q.used == nil {
		q.used = map[uint64]time.Duration{}
	}
	q.used[caller] = max(q.used[caller], q.floor)
	q.length.Store(int32(len(q.waiting)))
	return w
}

// leave takes a request out that gives up; false means that it was served.
func (q *queue) leave(w *waiter) bool {
	i := slices.Index(q.waiting, w)
	if i >= 0 {
		q.remove(i)
	}
	return i >= 0
}

// next takes out the request that is served next, nil for none.
func (q *queue) next() *waiter {
	if len(q.waiting) == 0 {
		return nil
	}
	i := q.first()
	w := q.waiting[i]
	q.floor = max(q.floor, q.used[w.caller])
	q.remove(i)
	return w
}

// first is the position of the request that is served next: of requests whose callers are even, the one that came first.
func (q *queue) first() int {
	best := 0
	for i, w := range q.waiting {
		if q.used[w.caller] < q.used[q.waiting[best].caller] {
			best = i
		}
	}
	return best
}

// remove takes request i out. With nobody waiting all callers are even.
func (q *queue) remove(i int) {
	q.waiting = slices.Delete(q.waiting, i, i+1)
	q.length.Store(int32(len(q.waiting)))
	if len(q.waiting) == 0 {
		q.used, q.floor = nil, 0
	}
}

// spend notes how long a call for a caller took, and reports whether another caller is to be served before the next one.
func (q *queue) spend(caller uint64, took time.Duration) bool {
	if len(q.waiting) == 0 {
		return false
	}
	q.used[caller] = max(q.used[caller], q.floor) + took
	first := q.waiting[q.first()].caller
	return first != caller && q.used[first] < q.used[caller]
}
