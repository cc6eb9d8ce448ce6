package spool

import "cmp"

// A sync of what makes a file longer has the file system commit its journal: the new size, the blocks. That waits for whoever
// else has it committed, like the store of the embedded server, which does so for each run. So zeros are written behind the
// end, and synced with what comes before them: the groups that overwrite them have nothing for the journal, and their syncs
// wait for the disk alone. A file may end in zeros therefore; no record begins with one.
const (
	aheadLeast = 64 << 10  // a smaller file has none
	aheadMost  = 256 << 10 // at once: one sync has that much more to write, and who waits for it waits longer
	smallGroup = 64 << 10  // to a larger group the journal is the smaller part, and the zeros would be the larger one
)

// ahead returns up to where there are to be zeros when the current segment ends at end, or less when there are none to write.
func (w *writer) ahead(end int64) int64 {
	least := cmp.Or(w.cfg.ahead, aheadLeast)
	if end <= w.current.room || end < least || len(w.buf) > smallGroup {
		return 0
	}
	room := min(end+min(end, aheadMost, max(w.cfg.SegmentBytes/16, least)), w.cfg.SegmentBytes)
	if !w.space.spares(room - end) {
		return 0
	}
	return room
}

// writeZeros writes zeros from one place to the other. A disk that takes none is no error: the file grows with what is written.
func (s *segment) writeZeros(from, to int64) {
	s.room = to // also after an error: the next try is behind it
	_, _ = s.file.WriteAt(make([]byte, to-from), from)
}
