package spool

import (
	"cmp"
	"slices"
	"time"
)

// Glance is a frame of which only the beginning was read.
type Glance struct {
	Frame           // without Payload
	At    time.Time // when it was written

	s   *Spool
	ref ref
	buf []byte
}

// Head returns the first n bytes of the payload, or all of a shorter one, until the next call.
func (g *Glance) Head(n int) ([]byte, error) {
	n = min(n, int(g.ref.size)-headerSize)
	g.buf = slices.Grow(g.buf[:0], n)[:n]
	if got, err := g.ref.seg.file.ReadAt(g.buf, g.ref.off+headerSize); got < n {
		return nil, orDamaged(err)
	}
	return g.buf, nil
}

// Sound reads all of the frame and tells whether it is as it was written.
func (g *Glance) Sound() bool { return g.s.sound(&g.ref) }

// Newest returns when the newest frame of those that are still here was written, the zero time for none.
func (s *Spool) Newest() (at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, seg := range s.segments {
		if seg.last.After(at) {
			at = seg.last
		}
	}
	return at
}

// Recent calls visit with the frames that were written since a moment, most at most, those of the tail too, the newest first,
// until it returns false. What can't be read is passed over. It is called before Run.
func (s *Spool) Recent(since time.Time, most int, visit func(*Glance) (more bool)) {
	g := Glance{s: s}
	refs := s.refsSince(since, most)
	for _, r := range refs[:min(most, len(refs))] {
		var raw [headerSize]byte
		if n, _ := r.seg.file.ReadAt(raw[:], r.off); n < headerSize {
			continue
		}
		h, ok := parseHeader(raw[:], r.seg.salt)
		if g.At = time.UnixMilli(h.at); !ok || h.kind != kindFrame || h.First != r.first || g.At.Before(since) {
			continue
		}
		if g.Frame, g.ref = h.Frame, r; !visit(&g) {
			return
		}
	}
}

// refsSince returns the frames of the newest segments that were written to since a moment and together have most frames or
// more, the newest first.
func (s *Spool) refsSince(since time.Time, most int) (all []ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	frames := map[*segment]int{}
	n, of := 0, (*segment)(nil)
	s.eachRef(func(r *ref) { // mostly of the same segment as the one before
		if r.seg != of {
			frames[of] += n
			n, of = 0, r.seg
		}
		n++
	})
	frames[of] += n
	wanted, sum := map[*segment]bool{}, 0
	for _, seg := range slices.Backward(s.segments) {
		if wanted[seg] = !seg.gone && !seg.last.Before(since) && sum < most; wanted[seg] {
			sum += frames[seg]
		}
	}
	in, of := false, nil
	s.eachRef(func(r *ref) {
		if r.seg != of {
			in, of = wanted[r.seg], r.seg
		}
		if in {
			all = append(all, *r)
		}
	})
	slices.SortFunc(all, func(a, b ref) int {
		return cmp.Or(cmp.Compare(b.seg.number, a.seg.number), cmp.Compare(b.off, a.off))
	})
	return all
}

// eachRef calls f with what is known of written frames, confirmed or not; s.mu is held.
func (s *Spool) eachRef(f func(*ref)) {
	for p := range s.lanes {
		for _, refs := range [][]ref{s.lanes[p].tail, s.lanes[p].refs} {
			for i := range refs {
				f(&refs[i])
			}
		}
	}
}
