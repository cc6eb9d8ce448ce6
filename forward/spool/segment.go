package spool

import (
	"fmt"
	"strings"
	"time"
)

// segment is a file of records. Once it was closed by an error or a restart nothing is added to it.
type segment struct {
	number   uint64
	salt     uint32
	name     string
	file     File
	size     int64
	room     int64 // up to where there are zeros behind it, if that is more; Run's
	live     int   // frames that are not confirmed
	liveSize int64 // bytes of their records
	at       time.Time
	last     time.Time // when the newest frame was written
	unread   bool      // the disk did not let us read all of it: it stays as it is
	damaged  bool      // some of it can't be read: what lives is copied forward, so that the damage goes
	absent   bool      // its file was removed, or cut off, while it is in use
	readers  int
	gone     bool // removed; who reads it last closes it

	events  tally // in its frames, also of those confirmed; guarded by the cursor's lock
	counted tally // at the start: of them those that the cursor had counted
	behind  bool  // at the start: there are others
}

// tally is events by partition.
type tally []uint64

func (t *tally) add(partition int32, events uint64) {
	for len(*t) <= int(partition) {
		*t = append(*t, 0)
	}
	(*t)[partition] += events
}

// found counts a frame that lies at off, where the cursor has counted up to end.
func (s *segment) found(partition int32, events uint64, off, end int64) {
	s.events.add(partition, events)
	if off < end {
		s.counted.add(partition, events)
	} else {
		s.behind = true
	}
}

// segmentName has the number of a segment, by which they are ordered, and its salt.
const segmentFormat = "%016x-%08x.seg"

func segmentName(number uint64, salt uint32) string { return fmt.Sprintf(segmentFormat, number, salt) }

// parseSegmentName is false for a name that is not a segment's.
func parseSegmentName(name string) (number uint64, salt uint32, ok bool) {
	if n, err := fmt.Sscanf(name, segmentFormat, &number, &salt); err != nil || n != 2 {
		return 0, 0, false
	}
	return number, salt, strings.HasSuffix(name, ".seg") && segmentName(number, salt) == name
}

// countIn adds a frame to the figures; s.mu is held.
func (s *Spool) countIn(r *ref) {
	r.seg.live++
	r.seg.liveSize += int64(r.size)
	s.stats.Frames++
	s.stats.Events += int(r.events)
}

// countOut takes a frame out of the figures and reports whether its segment has none left; s.mu is held.
func (s *Spool) countOut(r *ref) bool {
	r.seg.live--
	r.seg.liveSize -= int64(r.size)
	s.stats.Frames--
	s.stats.Events -= int(r.events)
	return r.seg.live == 0
}
