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
