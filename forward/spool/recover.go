package spool

import (
	"cmp"
	"errors"
	"io"
	"runtime"
	"slices"
	"time"
)

// recover builds the index from the segments, and takes the cursor as a hint.
func (s *Spool) recover() error {
	infos, err := s.files.List()
	if err != nil {
		return err
	}
	var cursorSize int64
	cursorThere := false
	for _, i := range infos {
		if i.Name == cursorName {
			cursorSize, cursorThere = i.Size, true
		}
		number, salt, ok := parseSegmentName(i.Name)
		if !ok {
			continue
		}
		s.segments = append(s.segments, &segment{number: number, salt: salt, name: i.Name, size: i.Size})
		s.number = max(s.number, number)
	}
	slices.SortFunc(s.segments, func(a, b *segment) int {
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.salt, b.salt))
	})
	if s.cursor, err = openCursor(s.files, cursorSize, cursorThere); err != nil {
		s.log.Warn("the cursor of the spool can't be used: the backend gets frames again", "error", err)
	}
	s.scanAll()
	if s.numbers, err = openNumbers(s.files); err != nil {
		s.log.Warn("the file of numbers can't be read: new events wait for the backend, if it is away", "error", err)
	}
	for p := range s.lanes {
		hint := &s.cursor.lanes[p]
		s.lanes[p].settle(s, hint.confirmed, hint.written)
		hint.confirmed = s.lanes[p].confirmed
		s.lanes[p].sent = hint.sending
	}
	s.takeStock()
	for _, seg := range s.segments {
		s.stats.Bytes += seg.size
		s.space.used.Add(seg.size)
	}
	if s.stats.Damaged > 0 || s.stats.Torn > 0 {
		s.log.Warn("parts of the spool can't be read and are set aside in its quarantine", "ranges", s.stats.Damaged,
			"bytes", s.stats.DamagedSize, "torn", s.stats.Torn)
	}
	return nil
}

// scanAll adds the frames of all segments to the lanes. Segments are read side by side: most of it is waiting or checksums.
func (s *Spool) scanAll() {
	side := runtime.GOMAXPROCS(0)
	scans := make([]chan contents, len(s.segments))
	begin := func(i int, spare [][]placed) {
		scans[i] = make(chan contents, 1)
		go func() { scans[i] <- s.scan(s.segments[i], i == len(s.segments)-1, spare) }()
	}
	var seen, total int64
	for i, seg := range s.segments {
		total += seg.size
		if i < side {
			begin(i, nil)
		}
	}
	for i, seg := range s.segments {
		c := <-scans[i]
		s.take(seg, c)
		if next := i + side; next < len(scans) { // no sooner: what was read and not taken is memory
			begin(next, c.frames)
		}
		seen += seg.size
		s.expectRefs(i+1, float64(total)/float64(max(seen, 1)))
	}
}

// expectRefs makes room in the lanes, of which so many segments were read, for the rest of them: growing little by little leaves
// several times as much behind.
func (s *Spool) expectRefs(segments int, factor float64) {
	for p := range s.lanes {
		l := &s.lanes[p]
		n := len(l.refs)
		if n < framesPiece || cap(l.refs)-n > n/segments {
			continue
		}
		more := n * 3 // the other segments may hold larger frames
		if f := factor*1.05 - 1; f < 3 {
			more = int(float64(n) * f)
		}
		l.refs = slices.Grow(l.refs, more)
	}
}

// take adds what was found in a segment.
func (s *Spool) take(seg *segment, c contents) {
	if c.err != nil {
		seg.unread = true // what can't be read now may be at the next start
		s.log.Error("a segment of the spool can't be read: its frames are not delivered by this process", "segment", seg.name, "error", c.err)
	}
	for _, d := range c.damaged {
		seg.damaged = true
		s.setAside(seg, d.off, d.end, d.tail)
	}
	end := s.cursor.end(seg.number)
	for _, frames := range c.frames {
		for i := range frames {
			r := &frames[i]
			l := &s.lanes[r.partition]
			l.refs = append(l.refs, r.ref)
			seg.found(r.partition, uint64(r.events), r.off, end)
		}
	}
}

// contents is what is found in a segment, up to err.
type contents struct {
	frames  [][]placed // in pieces: none is copied to grow
	spare   [][]placed // empty ones
	damaged []found
	err     error
}

// framesPiece is how many frames a piece of contents has.
const framesPiece = 4096

func (c *contents) add(p placed) {
	last := len(c.frames) - 1
	if last < 0 || len(c.frames[last]) == cap(c.frames[last]) {
		size := framesPiece
		if last < 0 {
			size = 64 // most segments have few
		}
		if last++; len(c.spare) > 0 {
			c.frames, c.spare = append(c.frames, c.spare[0][:0]), c.spare[1:]
		} else {
			c.frames = append(c.frames, make([]placed, 0, size))
		}
	}
	c.frames[last] = append(c.frames[last], p)
}

// scan reads a segment. In the newest one payloads are checked too: a crash may have left holes in what was written last. Of older
// ones the last record is, which a crash that was before others may have left without its end.
func (s *Spool) scan(seg *segment, newest bool, spare [][]placed) (c contents) {
	c.spare = spare
	if seg.file, c.err = s.files.Open(seg.name, false); c.err != nil {
		return c
	}
	var f Frame
	sc, err := newScanner(seg.file, seg.size, seg.salt)
	if c.err = err; err != nil {
		return c
	}
	for {
		r, err := sc.next()
		if errors.Is(err, io.EOF) {
			return c
		}
		if err == nil && !r.damaged && r.kind == kindFrame && (newest || r.end >= sc.blank) {
			var sound bool
			sound, err = sc.whole(&r, &f)
			r.damaged, r.tail = !sound, r.end >= sc.blank
		}
		if err != nil {
			c.err = err
			return c
		}
		switch {
		case r.damaged:
			c.damaged = append(c.damaged, r)
		case r.kind == kindFrame:
			if seg.at.IsZero() {
				seg.at = time.UnixMilli(r.at)
			}
			seg.last = time.UnixMilli(r.at)
			where := ref{first: r.First, events: uint32(r.Events), size: uint32(r.recordLength), seg: seg, off: r.off}
			c.add(placed{where, r.Partition})
		}
	}
}

// settle puts the lane's frames in order, each once, without those that are confirmed.
func (l *lane) settle(s *Spool, hint, written uint64) {
	order := func(a, b ref) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.events, b.events), cmp.Compare(a.seg.number, b.seg.number))
	}
	if !slices.IsSortedFunc(l.refs, order) {
		slices.SortStableFunc(l.refs, order)
	}
	kept := l.refs[:0]
	l.written = written // also of files that are lost
	for _, r := range l.refs {
		l.written = max(l.written, r.last())
		if n := len(kept); n > 0 && kept[n-1].first == r.first && kept[n-1].events == r.events {
			// Written again after a failure, or copied forward: mostly both are sound.
			if s.sound(&r) {
				kept[n-1] = r
			}
			continue
		}
		kept = append(kept, r)
	}
	if len(kept) > 0 && hint > l.written {
		s.log.Warn("the cursor of the spool is ahead of its frames and not believed: the backend gets frames again",
			"cursor", hint, "frames", l.written)
		hint = 0
	}
	l.confirmed = hint
	if s.cfg.tails() {
		for _, r := range kept {
			if r.last() <= hint {
				l.tail = append(l.tail, r)
			}
		}
	}
	l.refs = slices.DeleteFunc(kept, func(r ref) bool { return r.last() <= hint })
	for i := range l.refs {
		s.countIn(&l.refs[i])
	}
}

// sound tells whether the whole record can be read.
func (s *Spool) sound(r *ref) bool {
	var f Frame
	_, err := readRecord(r.seg.file, r.off, r.seg.salt, &f)
	return err == nil
}
