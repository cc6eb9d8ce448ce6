package spool

import (
	"errors"
	"slices"
	"time"

	"github.com/headgate-io/headgate/internal/failpoint"
)

// sparse is the part of a segment that lives when the rest is copied forward, in percent.
const sparse = 10

// unneeded is when the segment that is written goes though it could take more: nothing lives in it, and nothing came.
const unneeded = time.Minute

// tidy removes the segments that hold nothing, oldest first and each for good before the next: after a crash no older
// frames come back than those that the cursor was written for. A segment of which little lives, while confirmed frames
// fill most of the spool, is emptied by writing its frames again.
func (w *writer) tidy() {
	for {
		seg, live := w.oldestDone()
		if seg == nil {
			return
		}
		var err error
		if live {
			err = w.copyForward(seg)
		}
		if err == nil {
			err = w.remove(seg)
		}
		if err != nil {
			w.log.Warn("a segment of the spool can't be removed yet", "segment", seg.name, "error", err)
			return
		}
	}
}

// oldestDone returns the oldest segment if it can go, at once or after its frames were copied.
func (w *writer) oldestDone() (seg *segment, live bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.weigh()
	i := slices.IndexFunc(w.segments, func(s *segment) bool { return !s.unread })
	if i < 0 {
		return nil, false
	}
	if seg = w.segments[i]; seg == w.current {
		// One that takes no more goes too, or a large group that the backend has would keep a small space full for ever; so
		// does one that has not been needed for long.
		if seg.live > 0 || seg.size < w.cfg.SegmentBytes && time.Since(seg.last) < unneeded {
			return nil, false
		}
		w.current = nil
	}
	if seg.live == 0 {
		if !w.expired(seg, time.Now()) {
			return nil, false
		}
		return seg, false
	}
	if len(w.group) > 0 || w.ending { // the disk takes nothing, or there is no time
		return nil, false
	}
	var needed int64
	for _, other := range w.segments {
		needed += other.liveSize
	}
	wasteful := w.stats.Bytes > 2*needed+2*w.cfg.SegmentBytes
	if seg.damaged || wasteful && seg.liveSize*100 < seg.size*sparse {
		return seg, true
	}
	return nil, false
}

// copyForward writes the frames of a segment that live again, unchanged, in the newest segment.
func (w *writer) copyForward(seg *segment) error {
	refs := w.liveIn(seg)
	for len(refs) > 0 {
		n := 0
		for size := int64(0); n < len(refs) && (n == 0 || size+int64(refs[n].size) <= groupBytes); n++ {
			size += int64(refs[n].size)
		}
		if err := w.copyGroup(refs[:n]); err != nil {
			return err
		}
		refs = refs[n:]
	}
	return nil
}

// placed is a frame and its partition.
type placed struct {
	ref
	partition int32
}

func (w *writer) liveIn(seg *segment) (all []placed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for p := range w.lanes {
		for _, r := range w.lanes[p].refs {
			if r.seg == seg {
				all = append(all, placed{r, int32(p)})
			}
		}
	}
	return all
}

// copyGroup copies some frames with one sync. What turns out to be damaged is set aside.
func (w *writer) copyGroup(refs []placed) error {
	now := time.Now()
	if err := w.makeRoom(refs[0].seg.at); err != nil {
		w.poison(err)
		return err
	}
	w.buf = w.buf[:0]
	var f Frame
	moved := make([]ref, len(refs)) // with a nil segment: damaged
	for i, r := range refs {
		err := w.readOrRecall(r, &f)
		if errors.Is(err, errDamaged) {
			continue
		}
		if err != nil {
			r.seg.unread = true
			return err
		}
		w.placed = append(w.placed, placed{r.ref, r.partition})
		moved[i] = ref{first: r.first, events: r.events, size: r.size, seg: w.current, off: w.current.size + int64(len(w.buf))}
		w.buf = appendRecord(w.buf, &f, w.current.salt, now)
	}
	if len(w.buf) > 0 {
		if err := w.persist(); err != nil {
			w.poison(err)
			return err
		}
		w.account(w.current.size + int64(len(w.buf)))
	}
	for i, r := range refs {
		if moved[i].seg == nil {
			w.damaged(r.partition, r.ref)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.current.size += int64(len(w.buf))
	w.grown(int64(len(w.buf)))
	for i, r := range refs {
		if moved[i].seg != nil {
			w.moved(r, moved[i])
		}
	}
	return nil
}

// moved replaces where a frame is, if it still lives; w.mu is held.
func (s *Spool) moved(from placed, to ref) {
	l := &s.lanes[from.partition]
	i, ok := l.find(from.ref)
	if !ok {
		return
	}
	l.refs[i] = to
	s.countOut(&from.ref)
	s.countIn(&to)
	s.stats.Copied++
}

// find returns where a ref is among those of the lane.
func (l *lane) find(r ref) (int, bool) {
	i, _ := slices.BinarySearchFunc(l.refs, r.first, func(r ref, first uint64) int {
		switch {
		case r.first < first:
			return -1
		case r.first > first:
			return 1
		}
		return 0
	})
	for ; i < len(l.refs) && l.refs[i].first == r.first; i++ {
		if l.refs[i] == r {
			return i, true
		}
	}
	return 0, false
}

// oldestWithout returns the number of the first segment but that one; if there is none, that of the next.
func (w *writer) oldestWithout(seg *segment) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, other := range w.segments {
		if other != seg {
			return other.number
		}
	}
	return w.number + 1
}

// remove takes a segment out of the spool and deletes its file.
func (w *writer) remove(seg *segment) error {
	if err := w.cursor.removed(seg, w.oldestWithout(seg)); err != nil {
		w.warnCursor(err)
	}
	if err := w.files.Remove(seg.name); err != nil {
		return err
	}
	failpoint.Pass(failpoint.Removed)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.segments = slices.DeleteFunc(w.segments, func(s *segment) bool { return s == seg })
	w.forget(seg)
	w.grown(-seg.size)
	seg.gone = true
	if seg.readers == 0 {
		return seg.file.Close()
	}
	return nil
}
