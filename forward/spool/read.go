package spool

import (
	"errors"
	"slices"
)

// Next reads the first frame of the partition that is not confirmed and begins behind the event of that number; ok is
// false when there is none. f.Payload is used again where it has room. A frame that can't be read because it is damaged
// is set aside and passed over; the error is that of a disk that can't be read, and then it is worth a second try.
func (s *Spool) Next(partition int32, after uint64, f *Frame) (ok bool, err error) {
	for {
		r, ok := s.first(partition, after)
		if !ok {
			return false, nil
		}
		_, err := readRecord(r.seg.file, r.off, r.seg.salt, f)
		if err == nil && (f.Partition != partition || f.First != r.first || f.Events != int(r.events)) {
			err = errDamaged
		}
		s.release(r.seg)
		if !errors.Is(err, errDamaged) {
			return err == nil, err
		}
		s.damaged(partition, r)
	}
}

// first finds a frame and keeps its file open until release.
func (s *Spool) first(partition int32, after uint64) (ref, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	refs := s.lanes[partition].refs
	i, _ := slices.BinarySearchFunc(refs, after, func(r ref, after uint64) int {
		if r.first <= after {
			return -1
		}
		return 1
	})
	if i == len(refs) || refs[i].seg.gone {
		return ref{}, false
	}
	refs[i].seg.readers++
	return refs[i], true
}

func (s *Spool) release(seg *segment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seg.readers--
	if seg.gone && seg.readers == 0 {
		_ = seg.file.Close() // it was only read
	}
}

// damaged sets a frame aside that is not what was written.
func (s *Spool) damaged(partition int32, r ref) {
	s.mu.Lock()
	l := &s.lanes[partition]
	i, ok := l.find(r)
	if !ok {
		s.mu.Unlock()
		return
	}
	l.refs = slices.Delete(l.refs, i, i+1)
	r.seg.damaged = true
	s.unref(&r)
	s.stats.Lost += uint64(r.events)
	s.stats.Damaged++
	s.stats.DamagedSize += int64(r.size)
	r.seg.readers++
	s.mu.Unlock()
	_, err := s.quarantine(r.seg, r.off, r.off+int64(r.size))
	s.release(r.seg)
	s.log.Error("a frame in the spool is damaged: it is set aside in the quarantine and not delivered", "segment", r.seg.name,
		"offset", r.off, "partition", partition, "first", r.first, "events", r.events, "error", err)
	s.wake()
}
