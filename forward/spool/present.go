package spool

import "errors"

// Check has Run look soon whether the spool's files are all there: what was removed or cut off while it is in use can still
// be read from the open file, or is still in its owner's memory, is written again. It does not wait.
func (s *Spool) Check() {
	s.mu.Lock()
	s.checking = true
	s.mu.Unlock()
	s.wake()
}

// check looks for files that are not there any more, if it was asked to.
func (w *writer) check() {
	w.mu.Lock()
	asked := w.checking && !w.closing
	w.checking = false
	segments := append([]*segment(nil), w.segments...)
	w.mu.Unlock()
	if !asked || w.pause > 0 {
		return
	}
	infos, err := w.files.List()
	if err != nil {
		return // who can't be asked now may be next time
	}
	sizes := map[string]int64{}
	for _, i := range infos {
		sizes[i.Name] = i.Size
	}
	emptied := w.emptied()
	for _, seg := range segments {
		size, there := sizes[seg.name]
		if there && size >= seg.size && !emptied[seg] || seg.unread || seg.gone {
			continue
		}
		w.rescue(seg, there)
	}
	if _, there := sizes[cursorName]; !there {
		w.renewCursor()
	}
}

// rescue writes the frames of a segment again whose file is not there, or shorter than it was.
func (w *writer) rescue(seg *segment, there bool) {
	w.mu.Lock()
	frames, damaged, first := seg.live, w.stats.Lost, !seg.absent
	if first {
		seg.absent = true
		w.stats.Removed++
	}
	w.mu.Unlock()
	if first {
		w.log.Error("A FILE OF THE SPOOL WAS REMOVED OR CUT OFF while it is in use: its frames are written again", "segment", seg.name,
			"there", there, "frames", frames)
	}
	if seg == w.current {
		w.current = nil
	}
	err := w.copyForward(seg)
	if err == nil {
		err = w.remove(seg)
	}
	w.mu.Lock()
	lost := w.stats.Lost - damaged
	w.mu.Unlock()
	if err != nil {
		w.log.Warn("the frames of a file of the spool that was removed could not be written again yet", "segment", seg.name, "error", err)
		return
	}
	w.log.Info("the frames of a file of the spool are safe again", "segment", seg.name, "frames", frames, "events_lost", lost)
}

// renewCursor makes the cursor again that was removed.
func (w *writer) renewCursor() {
	c := w.cursor
	c.mu.Lock()
	defer c.mu.Unlock()
	file, err := w.files.Open(cursorName, true)
	if err != nil {
		w.warnCursor(err)
		return
	}
	old := c.file
	c.file = file
	if err = c.write(); old != nil {
		err = errors.Join(err, old.Close())
	}
	if err != nil {
		w.warnCursor(err)
	}
}
