package spool

import (
	"cmp"
	"errors"
	"io"
	"runtime"
	"slices"
	"sync"
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
	scans := make([]contents, len(s.segments))
	var reading sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, seg := range s.segments {
		reading.Go(func() {
			slots <- struct{}{}
			scans[i] = s.scan(seg, i == len(s.segments)-1)
			<-slots
		})
	}
	reading.Wait()
	for i, seg := range s.segments {
		if err := scans[i].err; err != nil {
			seg.unread = true // what can't be read now may be at the next start
			s.log.Error("a segment of the spool can't be read: its frames are not delivered by this process", "segment", seg.name, "error", err)
		}
		for _, d := range scans[i].damaged {
			seg.damaged = true
			s.setAside(seg, d.off, d.end, d.tail)
		}
		end := s.cursor.end(seg.number)
		for _, r := range scans[i].frames {
			l := &s.lanes[r.partition]
			l.refs = append(l.refs, r.ref)
			seg.found(r.partition, uint64(r.events), r.off, end)
		}
		scans[i] = contents{}
	}
}

// contents is what is found in a segment, up to err.
type contents struct {
	frames  []placed
	damaged []found
	err     error
}

// scan reads a segment. In the newest one payloads are checked too: a crash may have left holes in what was written last.
func (s *Spool) scan(seg *segment, newest bool) (c contents) {
	if seg.file, c.err = s.files.Open(seg.name, false); c.err != nil {
		return c
	}
	var f Frame
	for sc := newScanner(seg.file, seg.size, seg.salt); ; {
		r, err := sc.next()
		if errors.Is(err, io.EOF) {
			return c
		}
		if err != nil {
			c.err = err
			return c
		}
		if !r.damaged && r.kind == kindFrame && newest {
			_, err := readRecord(seg.file, r.off, seg.salt, &f)
			r.damaged, r.tail = errors.Is(err, errDamaged), r.end == seg.size
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
			c.frames = append(c.frames, placed{where, r.Partition})
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
