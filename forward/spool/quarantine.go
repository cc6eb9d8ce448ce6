package spool

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/headgate-io/headgate/internal/logfolder"
)

// mostAside is what is copied of one damaged range.
const mostAside = 64 << 20

// setAside copies a range of bytes to the quarantine and counts it, unless it is there from an earlier start. Until Run
// it needs no lock.
func (s *Spool) setAside(seg *segment, off, end int64, torn bool) {
	isNew, err := s.quarantine(seg, off, min(end, off+mostAside))
	if err != nil {
		s.log.Warn("a damaged part of the spool can't be copied to its quarantine", "segment", seg.name, "offset", off, "error", err)
	}
	switch {
	case !isNew:
	case torn:
		s.stats.Torn += end - off
	default:
		s.stats.Damaged++
		s.stats.DamagedSize += end - off
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
	s.countOut(&r)
	s.stats.Lost += uint64(r.events)
	s.stats.Damaged++
	s.stats.DamagedSize += int64(r.size)
	r.seg.readers++
	s.mu.Unlock()
	_, err := s.quarantine(r.seg, r.off, r.off+int64(r.size))
	s.release(r.seg)
	s.log.Error("a frame in the spool is damaged: it is set aside in the quarantine and not delivered", "segment", r.seg.name,
		"offset", r.off, "partition", partition, "first", r.first, "events", r.events, "error", err)
	if s.lost != nil {
		s.lost()
	}
	s.wake()
}

func (s *Spool) quarantine(seg *segment, off, end int64) (isNew bool, err error) {
	to, err := s.files.Open(fmt.Sprintf("%s/%s-%d", logfolder.Quarantine, seg.name, off), true)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return true, err
	}
	_, err = io.Copy(io.NewOffsetWriter(to, 0), io.NewSectionReader(seg.file, off, end-off))
	return true, errors.Join(err, to.Sync(), to.Close())
}
