package spool

import (
	"slices"
	"time"
)

// idle is how long there is nothing to do without being woken.
const idle = time.Hour

// together is how long a write waits at most for entries that are about to come: whoever said so may be held up.
const together = time.Millisecond

// gather takes the next group off the lanes. Without one it says how long there is nothing to do, or that it is over.
func (w *writer) gather(now time.Time) (wait time.Duration, done bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.group) > 0 { // that of a failed write
		w.group = w.unconfirmed(w.group)
		return 0, false
	}
	if w.waiting == 0 {
		w.stuck = nil // there is nothing to find out with; the next frame does
		if w.current != nil && w.current.live == 0 {
			return unneeded, w.closing
		}
		return idle, w.closing
	}
	if left := together - now.Sub(w.more); left > 0 && !w.closing {
		return left, false
	}
	oldest, size := now, 0
	for p := range w.lanes {
		l := &w.lanes[p]
		n := l.due(now, w.cfg.Linger, w.closing || w.cfg.tails() && w.heavy > groupBytes)
		for i := 0; i < n; i++ {
			if size > 0 && size >= groupBytes {
				n = i
				break
			}
			size += headerSize + len(l.entries[i].Payload)
		}
		if n > 0 {
			w.took(l, n)
			w.group = append(w.group, l.entries[:n]...)
			l.writing = append(l.writing, l.entries[:n]...)
			left := copy(l.entries, l.entries[n:])
			clear(l.entries[left:])
			l.entries = l.entries[:left]
		}
		if len(l.entries) > 0 && l.entries[0].at.Before(oldest) {
			oldest = l.entries[0].at
		}
	}
	return max(w.cfg.Linger-now.Sub(oldest), time.Millisecond), false
}

// due returns how many of the lane's entries are to be written: those up to the last that somebody waits for, or that
// were kept long enough. Half of the time is long enough when others are written.
func (l *lane) due(now time.Time, linger time.Duration, all bool) (n int) {
	if all || len(l.entries) == 0 {
		return len(l.entries)
	}
	if now.Sub(l.entries[0].at) >= linger {
		for n < len(l.entries) && now.Sub(l.entries[n].at) >= linger/2 {
			n++
		}
	}
	if l.waited == 0 {
		return n
	}
	for i := len(l.entries) - 1; i >= n; i-- {
		if l.entries[i].Waited {
			return i + 1
		}
	}
	return n
}

// unconfirmed ends the wait of those entries that the backend has confirmed since; w.mu is held.
func (w *writer) unconfirmed(group []*Entry) []*Entry {
	kept := group[:0]
	for _, e := range group {
		if e.Last() > w.lanes[e.Partition].confirmed {
			kept = append(kept, e)
			continue
		}
		l := &w.lanes[e.Partition]
		l.writing = slices.DeleteFunc(l.writing, func(of *Entry) bool { return of == e })
		w.mu.Unlock()
		e.Done()
		w.mu.Lock()
	}
	return kept
}
