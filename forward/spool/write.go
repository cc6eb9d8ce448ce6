package spool

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/headgate-io/headgate/internal/failpoint"
)

// groupBytes bounds what is written before a sync. A larger single frame is a group of its own.
const groupBytes = 8 << 20

// Pauses between tries to write to a disk that does not take it.
const (
	firstPause = 50 * time.Millisecond
	longPause  = time.Second
)

// writer is the state of Run.
type writer struct {
	*Spool
	current *segment // that frames are added to; nil: the next group begins one
	buf     []byte
	group   []*Entry
	offs    []int64               // where the records of the group lie in buf
	placed  []placed              // what was written last
	far     [maxPartitions]uint64 // up to where the lanes of placed are confirmed
	passed  []placed              // what was confirmed while it was written: frames of it, and beginnings of frames
	ending  bool
	pause   time.Duration
}

// Run writes what is appended, removes what is confirmed, until the spool is closed and has written everything, or ctx
// ends: then the error says how many events are not in it. It is called once.
func (s *Spool) Run(ctx context.Context) error {
	w := &writer{Spool: s}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		w.check()
		w.tidy()
		wait, done := w.gather(time.Now())
		work := s.work
		if len(w.group) > 0 {
			if wait = w.commit(); wait > 0 {
				work = nil // a disk that failed is not asked again sooner, whatever comes
			}
		} else if done {
			break
		}
		if wait == 0 {
			continue
		}
		timer.Reset(wait)
		select {
		case <-work:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return w.end()
}

// Close makes Run write what there is and return. It may be called twice; it does not wait, Run does.
func (s *Spool) Close() {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.wake()
}

// commit writes and syncs the group and tells who waits for it. After a failure it says how long to leave the disk
// alone; the group stays, and goes to a new file.
func (w *writer) commit() (pause time.Duration) {
	began := time.Now()
	if err := w.write(began); err != nil {
		w.pause = min(max(2*w.pause, firstPause), longPause)
		w.poison(err)
		return w.pause
	}
	w.pause = 0
	w.index(began)
	w.account(w.current.size)
	for _, r := range w.passed {
		w.note(r.partition, r.last(), 0)
	}
	w.passed = w.passed[:0]
	for i, e := range w.group {
		e.Done()
		w.group[i] = nil
	}
	w.group = w.group[:0]
	return 0
}

// write makes the group last.
func (w *writer) write(now time.Time) error {
	if err := w.makeRoom(now); err != nil {
		return err
	}
	w.buf, w.offs = w.buf[:0], w.offs[:0]
	for _, e := range w.group {
		w.offs = append(w.offs, int64(len(w.buf)))
		w.buf = appendRecord(w.buf, &e.Frame, w.current.salt, now)
	}
	return w.persist()
}

// persist makes buf last at the end of the current segment.
func (w *writer) persist() error {
	if err := failpoint.Err(failpoint.SpoolWrite); err != nil {
		return err
	}
	seg := w.current
	end := seg.size + int64(len(w.buf))
	room := w.ahead(end)
	w.space.written.Add(max(0, max(end, room)-max(seg.size, seg.room)))
	if _, err := seg.file.WriteAt(w.buf, seg.size); err != nil {
		return err
	}
	if room > end {
		seg.writeZeros(end, room)
	}
	if err := failpoint.Err(failpoint.SpoolSync); err != nil {
		return err
	}
	err := seg.file.Sync()
	failpoint.Pass(failpoint.SpoolSynced)
	return err
}

// makeRoom makes the current segment one that may take more; at is when the oldest frame was written that goes in.
func (w *writer) makeRoom(at time.Time) error {
	w.placed = w.placed[:0]
	if w.current != nil && w.current.size < w.cfg.SegmentBytes {
		return nil
	}
	if w.current != nil {
		w.cursor.whole(w.current.number)
	}
	w.current = nil
	return w.begin(at)
}

// begin makes the next segment.
func (w *writer) begin(at time.Time) error {
	w.number++
	seg := &segment{number: w.number, salt: rand.Uint32(), at: at}
	seg.name = segmentName(seg.number, seg.salt)
	file, err := w.files.Open(seg.name, true)
	if err != nil {
		return fmt.Errorf("begin a segment: %w", err)
	}
	failpoint.Pass(failpoint.Segment)
	seg.file, w.current = file, seg
	w.mu.Lock()
	w.segments = append(w.segments, seg)
	w.mu.Unlock()
	return nil
}

// index makes the frames of the group known.
func (w *writer) index(began time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	seg := w.current
	for i, e := range w.group {
		end := int64(len(w.buf))
		if i+1 < len(w.offs) {
			end = w.offs[i+1]
		}
		l := &w.lanes[e.Partition]
		clear(l.writing)
		l.writing = l.writing[:0]
		w.enter(e, ref{first: e.First, events: uint32(e.Events), size: uint32(end - w.offs[i]), seg: seg, off: seg.size + w.offs[i]})
	}
	seg.size += int64(len(w.buf))
	seg.last = began
	w.grown(int64(len(w.buf)))
	w.stuck = nil
	w.stats.Groups++
	w.stats.Written += uint64(len(w.group))
	w.stats.Syncs += time.Since(began)
	if cap(w.buf) > 2*groupBytes {
		w.buf = nil
	}
}

// enter makes one frame known; w.mu is held.
func (w *writer) enter(e *Entry, r ref) {
	w.placed = append(w.placed, placed{r, e.Partition})
	l := &w.lanes[e.Partition]
	l.written = max(l.written, r.last())
	if r.last() <= l.confirmed {
		w.passed = append(w.passed, placed{r, e.Partition})
		if w.cfg.tails() {
			l.tail = append(l.tail, r)
		}
		return
	}
	if r.first <= l.confirmed {
		w.passed = append(w.passed, placed{ref{first: r.first, events: uint32(l.confirmed - r.first + 1)}, e.Partition})
	}
	l.refs = append(l.refs, r)
	w.countIn(&r)
}

// account notes what was written last, up to size of the file, as something that the files should hold.
func (w *writer) account(size int64) {
	w.mu.Lock()
	for i := range w.placed {
		p := w.placed[i].partition
		w.far[p] = w.lanes[p].confirmed
	}
	w.mu.Unlock()
	if err := w.cursor.wrote(w.current, size, w.placed, &w.far); err != nil {
		w.warnCursor(err)
	}
}

// grown counts bytes of segments; w.mu is held.
func (w *writer) grown(n int64) {
	w.stats.Bytes += n
	w.space.used.Add(n)
}

// poison ends the file that a write failed on: what it holds beyond the last sync is not to be trusted, and a sync that
// succeeds later would prove nothing. What was synced before stays in the index.
func (w *writer) poison(err error) {
	w.mu.Lock()
	first := w.stuck == nil
	w.stuck = err
	w.stats.Failed++
	seg := w.current
	w.mu.Unlock()
	w.current = nil
	if first {
		w.log.Error("the spool could not be written: its frames go to a new file", "error", err)
	}
	if seg == nil || seg.size > 0 {
		return
	}
	if err := w.remove(seg); err != nil && first { // nothing in it was synced
		w.log.Warn("a file of the spool that could not be written can't be removed", "segment", seg.name, "error", err)
	}
}

// end closes the files.
func (w *writer) end() error {
	w.mu.Lock()
	events := 0
	for _, e := range w.group {
		events += e.Events
	}
	for p := range w.lanes {
		for _, e := range w.lanes[p].entries {
			events += e.Events
		}
	}
	w.mu.Unlock()
	w.current, w.ending = nil, true
	w.tidy()
	errs := []error{w.cursor.close(), w.numbers.close()}
	if events > 0 {
		errs = append(errs, fmt.Errorf("%d events could not be written to the spool", events))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.space.tail.Add(-w.stats.Tail)
	for _, seg := range w.segments {
		w.space.used.Add(-seg.size)
		seg.gone = true
		if seg.readers == 0 && seg.file != nil {
			errs = append(errs, seg.file.Close())
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close spool of stream %s: %w", w.cfg.Stream, err)
	}
	return nil
}
