package spool

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/headgate-io/headgate/internal/logfolder"
)

// Damage is a range of bytes of a segment that is not what was written.
type Damage struct {
	Segment   string
	Offset    int64
	Size      int64
	Torn      bool   // at the end, where a crash may have cut a write off
	Partition int32  // of the frame whose payload is damaged, else -1
	First     uint64 // its first number
	Events    int

	Missing *Missing // what the files should hold and do not; Segment names files that are not there, and the rest is zero
}

// String says where and what.
func (d Damage) String() string {
	if d.Missing != nil {
		return fmt.Sprintf("lost: %v; files missing: %s", d.Missing, d.Segment)
	}
	what := "no record can be read"
	switch {
	case d.Partition >= 0:
		what = fmt.Sprintf("the payload of a frame is damaged: partition %d, number %d, %d events", d.Partition, d.First, d.Events)
	case d.Torn:
		what = "the end is cut off, as by a crash"
	}
	return fmt.Sprintf("%s: offset %d, %d bytes: %s", d.Segment, d.Offset, d.Size, what)
}

// Record is a frame where it lies.
type Record struct {
	Segment   string
	Offset    int64
	At        time.Time // when it was written
	Frame     Frame     // with its payload, lent
	Confirmed bool      // by the cursor
}

// Examine reads every byte of the spool in files, in the order of its files, and changes nothing. Either function may be
// nil.
func Examine(files Files, record func(Record) error, damage func(Damage) error) error {
	infos, err := files.List()
	if err != nil {
		return err
	}
	slices.SortFunc(infos, func(a, b logfolder.Info) int { return cmp.Compare(a.Name, b.Name) })
	led, err := ledgerIn(files, infos)
	if err != nil {
		return err
	}
	e := examiner{led: led, record: record, damage: damage}
	for _, i := range infos {
		if number, salt, ok := parseSegmentName(i.Name); ok {
			e.seg = &segment{name: i.Name, salt: salt, number: number}
			e.segments = append(e.segments, e.seg)
			if err := e.examine(files, i.Size); err != nil {
				return fmt.Errorf("%s: %w", i.Name, err)
			}
		}
	}
	now, err := ledgerIn(files, infos) // a gateway may have removed some meanwhile
	if err != nil || damage == nil {
		return err
	}
	return e.takeStock(&now)
}

func ledgerIn(files Files, infos []logfolder.Info) (led ledger, err error) {
	for _, i := range infos {
		if i.Name != cursorName {
			continue
		}
		f, err := files.Open(cursorName, false)
		if err != nil {
			return led, err
		}
		_, led = readCursor(f, i.Size)
		return led, f.Close()
	}
	return led, nil
}

// examiner reads the segments.
type examiner struct {
	led      ledger
	seg      *segment // that is read
	segments []*segment
	live     [maxPartitions][]ref // not confirmed
	record   func(Record) error
	damage   func(Damage) error
}

// takeStock reports what is missing; now is the ledger as it is at the end.
func (e *examiner) takeStock(now *ledger) error {
	for p := range e.live {
		l := e.led.lanes[p]
		l.before, l.confirmed = now.lanes[p].before, now.lanes[p].confirmed
		slices.SortFunc(e.live[p], func(a, b ref) int { return cmp.Compare(a.first, b.first) })
		if m, ok := l.missing(int32(p), countedIn(e.segments, now.oldest, p), e.live[p]); ok {
			m.More = e.led.lags(e.segments)
			if err := e.damage(Damage{Segment: absent(e.segments, &e.led), Partition: -1, Missing: &m}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *examiner) examine(files Files, size int64) error {
	file, err := files.Open(e.seg.name, false)
	if err != nil {
		return err
	}
	defer file.Close()
	var f Frame
	sc, err := newScanner(file, size, e.seg.salt)
	if err != nil {
		return err
	}
	for {
		r, err := sc.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = e.judge(file, &r, &f)
		}
		if err != nil {
			return err
		}
	}
}

func (e *examiner) judge(file File, r *found, f *Frame) error {
	d := Damage{Segment: e.seg.name, Offset: r.off, Size: r.end - r.off, Torn: r.tail, Partition: -1}
	if !r.damaged {
		if r.kind != kindFrame {
			return nil
		}
		confirmed := r.Last() <= e.led.lanes[r.Partition].confirmed
		e.seg.found(r.Partition, uint64(r.Events), r.off, e.led.end(e.seg.number))
		if !confirmed {
			e.live[r.Partition] = append(e.live[r.Partition], ref{first: r.First, events: uint32(r.Events)})
		}
		_, err := readRecord(file, r.off, e.seg.salt, f)
		if err == nil && e.record != nil {
			return e.record(Record{Segment: e.seg.name, Offset: r.off, At: time.UnixMilli(r.at), Frame: *f, Confirmed: confirmed})
		}
		if !errors.Is(err, errDamaged) {
			return err
		}
		d.Partition, d.First, d.Events = r.Partition, r.First, r.Events
	}
	if e.damage == nil {
		return nil
	}
	return e.damage(d)
}

// Repair sets all damage aside and writes the segments that have some again without it. It returns what it found. No
// process may use the spool meanwhile.
func Repair(files Files) (all []Damage, err error) {
	if err := Examine(files, nil, func(d Damage) error { all = append(all, d); return nil }); err != nil {
		return nil, err
	}
	s, err := New(Config{}, Deps{Files: files})
	if err != nil {
		return all, err
	}
	w := &writer{Spool: s}
	for len(all) > 0 && len(s.segments) > 0 {
		i := slices.IndexFunc(s.segments, func(seg *segment) bool {
			return slices.ContainsFunc(all, func(d Damage) bool { return d.Segment == seg.name })
		})
		if i < 0 {
			break
		}
		seg := s.segments[i]
		if err := errors.Join(w.copyForward(seg), w.remove(seg)); err != nil {
			return all, errors.Join(err, w.end())
		}
	}
	return all, w.end()
}
