package spool

import (
	"errors"
	"slices"
	"time"
)

// A tail is frames that the backend has confirmed, kept for the case that it loses them. It lies in segments of which nothing
// else is needed, and goes first when there is no room.

// tails tells whether there is one.
func (c *Config) tails() bool { return c.TailBytes > 0 }

// retire has the first n refs of the lane confirmed; s.mu is held.
func (s *Spool) retire(l *lane, n int) (freed bool) {
	for i := range l.refs[:n] {
		freed = s.countOut(&l.refs[i]) || freed
	}
	if s.cfg.tails() {
		l.tail = append(l.tail, l.refs[:n]...)
	}
	clear(l.refs[:n])
	l.refs = l.refs[n:]
	return freed
}

// mayLeaveOut tells whether frames that are confirmed before they were written need not be written any more; s.mu is held.
func (s *Spool) mayLeaveOut() bool { return !s.cfg.tails() || s.stuck != nil || s.tight }

// expired tells whether a segment that holds a tail alone need not be kept any longer; w.mu is held.
func (w *writer) expired(seg *segment, now time.Time) bool {
	if !w.cfg.tails() || w.tight {
		return true
	}
	return w.stats.Tail > w.cfg.TailBytes || now.Sub(seg.last) > w.cfg.TailAge
}

// weigh adds up the tail, and finds out whether there is room for it; w.mu is held. The segment that is written belongs to it
// while nothing lives in it: those of many idle spools would keep all others from the space.
func (w *writer) weigh() {
	tail := int64(0)
	for _, seg := range w.segments {
		if seg.live == 0 && !seg.unread {
			tail += seg.size
		}
	}
	w.space.tail.Add(tail - w.stats.Tail)
	w.stats.Tail = tail
	w.tight = w.cfg.tails() && w.space.fullWith(w.stats.Bytes, 0) != ""
}

// forget drops what the index has of a segment's tail; w.mu is held.
func (w *writer) forget(seg *segment) {
	if !w.cfg.tails() {
		return
	}
	for p := range w.lanes {
		l := &w.lanes[p]
		l.tail = slices.DeleteFunc(l.tail, func(r ref) bool { return r.seg == seg })
	}
}

// Again reads the first frame of the partition that ends behind the event of that number, confirmed or not, written or still to be; ok is
// false when there is none. f.Payload is used again where it has room. What is damaged is passed over.
func (s *Spool) Again(partition int32, after uint64, f *Frame) (ok bool, err error) {
	for {
		r, ok := s.kept(partition, after, f)
		if !ok {
			return f.First > 0, nil
		}
		_, err := readRecord(r.seg.file, r.off, r.seg.salt, f)
		s.release(r.seg)
		if err == nil && f.Partition == partition && f.First == r.first {
			return true, nil
		}
		if err != nil && !errors.Is(err, errDamaged) {
			return false, err
		}
		after = r.last()
	}
}

// kept returns where that frame is, and keeps its file open until release. One that is in memory alone it copies into f; else f.First is 0.
func (s *Spool) kept(partition int32, after uint64, f *Frame) (ref, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.lanes[partition]
	for _, refs := range [][]ref{l.tail, l.refs} {
		i, _ := slices.BinarySearchFunc(refs, after, func(r ref, after uint64) int {
			if r.last() <= after {
				return -1
			}
			return 1
		})
		for ; i < len(refs); i++ {
			if !refs[i].seg.gone {
				refs[i].seg.readers++
				return refs[i], true
			}
		}
	}
	f.First = 0
	for _, entries := range [][]*Entry{l.writing, l.entries} {
		for _, e := range entries {
			if e.Last() > after {
				payload := append(f.Payload[:0], e.Payload...)
				*f = e.Frame
				f.Payload = payload
				return ref{}, false
			}
		}
	}
	return ref{}, false
}
