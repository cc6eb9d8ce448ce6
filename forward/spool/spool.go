package spool

import (
	"cmp"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/headgate-io/headgate/event"
)

// Config describes a spool. Zero values mean what the comments say.
type Config struct {
	Stream       string // a name for the log
	SegmentBytes int64  // size at which a file is followed by the next one; 64 MiB, or a sixteenth of the space if that is less
	// Linger is how long frames that nobody waits for are kept from the disk: what the backend confirms in the
	// meantime is never written. 500 ms.
	Linger time.Duration

	// TailBytes and TailAge bound what is kept of frames that the backend has confirmed: all of it, or as old as that. 0 bytes:
	// none; then what is confirmed before it was written is never written.
	TailBytes int64
	TailAge   time.Duration

	ahead int64 // size of the smallest file that has zeros behind its end, for tests; 0: aheadLeast
}

// Deps is what a spool uses and others own.
type Deps struct {
	Files Files  // needed
	Space *Space // how much there may be; unbounded when nil
	Log   *slog.Logger
	Lost  func() // called when a frame is found damaged while the spool is in use; nil: nobody is told
}

const (
	defaultSegment = 64 << 20
	defaultLinger  = 500 * time.Millisecond
	// mostFrames bounds the memory of the index: 32 bytes a frame.
	mostFrames = 2 << 20
)

// Spool keeps the frames of one stream. Its methods may be called concurrently.
type Spool struct {
	cfg     Config
	files   Files
	space   *Space
	log     *slog.Logger
	lost    func() // nil for nobody
	cursor  *cursor
	numbers *numbers

	work chan struct{} // wakes Run: capacity 1

	mu       sync.Mutex // guards the rest
	lanes    [maxPartitions]lane
	recall   Recall
	segments []*segment // oldest first; the last may be the one that is written
	number   uint64     // of the newest segment there ever was
	waited   int        // entries that somebody waits for
	more     time.Time  // when the last of them came, if others are to be written with it; else zero
	waiting  int        // entries in the lanes
	heavy    int        // bytes of them
	closing  bool
	checking bool  // it is to be looked whether all files are there
	tight    bool  // there is no room for a tail
	stuck    error // why the last write failed, nil since one has succeeded
	stats    Stats
}

// lane is what the spool knows of one partition.
type lane struct {
	entries   []*Entry // not written yet, in order
	writing   []*Entry // before them, those that are being written
	waited    int      // of entries somebody waits for so many
	refs      []ref    // written and not confirmed, in order
	tail      []ref    // written and confirmed, in order, as far as it is kept
	confirmed uint64   // number up to which everything is confirmed
	written   uint64   // number of the last event that was written
	sent      uint64   // number of the last event of the run that an earlier process sent last
	missing   uint64   // events that were found to be lost at the start
}

// ref is where a frame is.
type ref struct {
	first  uint64
	events uint32
	size   uint32 // of the record
	seg    *segment
	off    int64
}

func (r *ref) last() uint64 { return r.first + uint64(r.events) - 1 }

// Entry is a frame on its way into the spool. The caller leaves it and its payload alone until Done is called.
type Entry struct {
	Frame
	Waited bool // somebody waits for it: it is written at once
	More   bool // or rather soon: together with others that are about to be appended, the last of them without More
	// Done is called once: when the frame is safe, or need not be written as it is confirmed. It is called by Run, Append or
	// Advance, and must not call the spool.
	Done func()

	at time.Time
}

// Backlog is what a spool has of one partition.
type Backlog struct {
	First, Last uint64 // numbers of the events that are not confirmed; 0 for none
	Frames      int
	Events      int // without those that are confirmed, of the first frame maybe some
	Bytes       int64
	Confirmed   uint64 // number up to which everything is confirmed, maybe in the middle of the first frame
	Highest     uint64 // number of the last event that is known, also of those confirmed
	Lost        uint64 // events that were written and not confirmed, and are not there any more
	Bound       uint64 // number up to which the partition may have gone; 0 for not known
	Sent        uint64 // number of the last event of the run that was sent last; a hint, 0 for none
}

// Stats are figures of a spool.
type Stats struct {
	Bytes       int64 // of all segments
	Frames      int   // not confirmed
	Events      int
	Oldest      time.Time // when the first of these was written; zero for none
	Segments    int
	Tail        int64  // bytes of segments with nothing but confirmed frames
	Groups      uint64 // writes that were synced, and
	Written     uint64 // frames in them
	Syncs       time.Duration
	Failed      uint64 // writes that failed, after which a new file was begun
	Damaged     uint64 // ranges of bytes that were set aside
	DamagedSize int64
	Lost        uint64 // events in them, as far as their headers could be read, and those missing
	Removed     uint64 // files that were removed or cut off while they were in use, and written again
	Missing     uint64 // events that were written and are not in the files any more, at most
	Torn        int64  // bytes at the ends of segments that a crash cut off, set aside too
	Copied      uint64 // frames written again so that a segment could go
}

// New opens the spool in files. It succeeds whatever is damaged in there; the error is that of a folder that can't be
// read or written at all. Frames are taken from now on and written when it runs.
func New(cfg Config, deps Deps) (*Spool, error) {
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	if deps.Space == nil {
		deps.Space = NewSpace(0, 0, nil)
	}
	s := &Spool{cfg: cfg, files: deps.Files, space: deps.Space, log: deps.Log.With("stream", cfg.Stream), lost: deps.Lost, work: make(chan struct{}, 1)}
	s.cfg.SegmentBytes = cmp.Or(cfg.SegmentBytes, deps.Space.segment())
	if s.cfg.tails() && cfg.SegmentBytes == 0 { // it goes by whole segments
		s.cfg.SegmentBytes = min(s.cfg.SegmentBytes, max(s.cfg.TailBytes/4, 1))
	}
	s.cfg.Linger = cmp.Or(cfg.Linger, defaultLinger)
	if err := s.recover(); err != nil {
		return nil, fmt.Errorf("open spool of stream %s: %w", cfg.Stream, err)
	}
	return s, nil
}

// Append hands a frame over. The frames of a partition come in the order of their numbers. It never waits and never
// refuses: when there is no room the entry waits for it; ask Room before there is something to append.
func (s *Spool) Append(e *Entry) {
	if err := e.check(); err != nil {
		panic(fmt.Sprintf("BUG: spool: an impossible frame: %v", err))
	}
	s.mu.Lock()
	l := &s.lanes[e.Partition]
	if e.Last() <= l.confirmed && s.mayLeaveOut() {
		s.mu.Unlock()
		e.Done()
		return
	}
	e.at = time.Now()
	l.entries = append(l.entries, e)
	s.waiting++
	s.heavy += len(e.Payload)
	if e.Waited {
		s.waited++
		l.waited++
		if s.more = (time.Time{}); e.More {
			s.more = e.at
		}
	}
	first := s.waiting == 1 || s.heavy > groupBytes && s.heavy-len(e.Payload) <= groupBytes || e.Waited && (s.waited == 1 || !e.More)
	s.mu.Unlock()
	if first {
		s.wake()
	}
}

// Advance says that the backend has everything of the partition up to the event numbered confirmed, 0 for nothing new, and
// that the events up to the one numbered sending are being sent, as one run.
func (s *Spool) Advance(partition int32, confirmed, sending uint64) {
	done, hint, freed := s.confirm(partition, confirmed)
	for _, e := range done {
		e.Done()
	}
	s.note(partition, hint, sending)
	if freed {
		s.wake()
	}
}

// note moves the cursor on.
func (s *Spool) note(partition int32, confirmed, sending uint64) {
	if err := s.cursor.set(partition, confirmed, sending); err != nil {
		s.warnCursor(err)
	}
}

func (s *Spool) warnCursor(err error) {
	s.log.Warn("the cursor of the spool can't be written: after a restart the backend gets frames again", "error", err)
}

// confirm returns the entries that need not be written any more, the number to note in the cursor (0 for none), and
// whether a segment has become free.
func (s *Spool) confirm(partition int32, last uint64) (done []*Entry, hint uint64, freed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.lanes[partition]
	if last <= l.confirmed {
		return nil, 0, false
	}
	l.confirmed = last
	n := 0
	for s.mayLeaveOut() && n < len(l.entries) && l.entries[n].Last() <= last {
		n++
	}
	if done = l.entries[:n:n]; n > 0 {
		s.took(l, n)
		l.entries = l.entries[n:]
	}
	n = 0
	for ; n < len(l.refs) && l.refs[n].last() <= last; n++ {
		hint = l.refs[n].last()
	}
	if n < len(l.refs) && l.refs[n].first <= last { // the middle of a frame
		hint = last
	}
	return done, hint, s.retire(l, n)
}

// took counts the first entries of a lane out; s.mu is held.
func (s *Spool) took(l *lane, n int) {
	s.waiting -= n
	for _, e := range l.entries[:n] {
		s.heavy -= len(e.Payload)
		if e.Waited {
			s.waited--
			l.waited--
		}
	}
}

// Room returns nil when more may be taken, else the *event.Problem spool_full. What was taken before finds room.
func (s *Spool) Room() error {
	s.mu.Lock()
	bytes, frames, stuck := s.stats.Bytes-s.stats.Tail, s.stats.Frames, s.stuck
	s.mu.Unlock()
	why := ""
	switch {
	case stuck != nil:
		why = "its disk takes nothing (" + stuck.Error() + ")"
	case frames >= mostFrames:
		why = fmt.Sprintf("%d frames wait in it", frames)
	default:
		why = s.space.full(bytes)
	}
	if why == "" {
		return nil
	}
	return event.Problemf(event.SpoolFull, "the spool of stream %s is full: %s; retry later, when the backend has taken some of it", s.cfg.Stream, why)
}

// Backlog returns what the spool has of a partition.
func (s *Spool) Backlog(partition int32) (b Backlog) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.lanes[partition]
	b.Bound = s.numbers.bound(partition, max(l.confirmed, l.written, l.sent))
	b.Highest, b.Sent, b.Confirmed, b.Lost = max(l.confirmed, l.written), l.sent, l.confirmed, l.missing
	for i := range l.refs {
		r := &l.refs[i]
		b.Frames++
		b.Events += int(r.events)
		b.Bytes += int64(r.size)
		b.Last = r.last()
	}
	if b.Frames > 0 {
		b.First = l.refs[0].first
		if b.Confirmed >= b.First {
			b.Events -= int(b.Confirmed - b.First + 1)
		}
	}
	return b
}

// Stats returns the figures of this moment.
func (s *Spool) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	st.Segments = len(s.segments)
	for _, seg := range s.segments {
		if seg.live > 0 && (st.Oldest.IsZero() || seg.at.Before(st.Oldest)) {
			st.Oldest = seg.at
		}
	}
	return st
}

func (s *Spool) wake() {
	select {
	case s.work <- struct{}{}:
	default:
	}
}
