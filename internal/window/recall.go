package window

import "time"

// Newest returns when the newest finished id was finished, the zero time when there is none.
func (s *Set) Newest() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	newest := int64(-1)
	for _, sh := range s.shares.of {
		if n := sh.held.newest; n != 0 {
			newest = max(newest, int64(s.entry(n-1).at))
		}
	}
	if newest < 0 {
		return time.Time{}
	}
	return time.Unix(s.made.Unix()+newest, 0)
}

// Unread reports whether the log ends in ids whose identities an earlier version made in another way: what is known of their events is
// in stored frames alone.
func (s *Set) Unread() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unread
}

// lately is how many seconds the oldest id of the largest share may be behind one that no log has yet: moments are those at which frames
// were written, and ids are finished behind that, so in a window that reaches back some seconds only none would be recalled.
const lately = 5

// Recall adds an id whose event was found stored, as finished at a moment, and has it kept in the log; it reports false when the
// id was there, is too old, or would take the place of one that was finished well behind it: that is one that had to make room already,
// and each start would bring such back in place of what came behind them. It is called behind Keep and before any Claim, in the order
// of the moments.
func (s *Set) Recall(o Owner, id ID, at, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sec, ok := placed(s.made, now, at.Unix())
	if _, found := s.find(id); found || !ok || now.Sub(at) > s.age {
		return false
	}
	if s.finished >= s.limit && sec+lately < s.entry(s.shares.heap[0].held.oldest-1).at {
		return false
	}
	s.restore(o, id, at.Unix(), now)
	n := s.shares.find(o).held.newest - 1
	s.record(o, s.entry(n).at)
	s.note(n, 0)
	s.noted()
	return true
}
