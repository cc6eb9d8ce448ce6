package spool

import "errors"

// Recall is how the owner gives a frame again that it still has in memory; it reports false when it has not. It is called by Run,
// and must not call the spool.
type Recall func(partition int32, first uint64, f *Frame) bool

// RecallFrom has frames that are damaged in a file taken from the owner's memory, as far as they are there.
func (s *Spool) RecallFrom(recall Recall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recall = recall
}

// readOrRecall reads the frame that is to be written again.
func (w *writer) readOrRecall(r placed, f *Frame) error {
	_, err := readRecord(r.seg.file, r.off, r.seg.salt, f)
	if !errors.Is(err, errDamaged) {
		return err
	}
	w.mu.Lock()
	recall := w.recall
	w.mu.Unlock()
	if recall == nil || !recall(r.partition, r.first, f) || f.Partition != r.partition || f.First != r.first ||
		f.Events != int(r.events) || headerSize+len(f.Payload) != int(r.size) {
		return errDamaged
	}
	return nil
}

// mostLooks bounds the frames of a lane among which those are chosen that are looked at.
const mostLooks = 4096

// emptied looks at a frame of each lane in each file, and tells in which files one is not there any more: one that was cut off and has grown again,
// or was filled with zeros. It reads headers alone.
func (w *writer) emptied() map[*segment]bool {
	var some []ref
	w.mu.Lock()
	for p := range w.lanes {
		refs, last := w.lanes[p].refs, (*segment)(nil)
		for i := 0; i < len(refs); i += 1 + len(refs)/mostLooks {
			if refs[i].seg != last {
				last = refs[i].seg
				some = append(some, refs[i])
			}
		}
	}
	w.mu.Unlock()
	all := map[*segment]bool{}
	var raw [headerSize]byte
	for _, r := range some {
		if r.seg.gone || r.seg.unread || all[r.seg] {
			continue
		}
		n, err := r.seg.file.ReadAt(raw[:], r.off)
		if n < headerSize && !errors.Is(orDamaged(err), errDamaged) {
			continue // who can't be asked now may be next time
		}
		if _, ok := parseHeader(raw[:n], r.seg.salt); !ok {
			all[r.seg] = true
		}
	}
	return all
}
