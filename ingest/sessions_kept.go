package ingest

import "container/list"

// mostSessions are remembered; of more, one that was not used for longest is forgotten.
const mostSessions = 10_000

// A client misses the outcomes of what it has in flight at most, which is mostFlights frames. Rejected events are named
// again only as long as that takes little: of a frame of 200 bytes, 8 KiB can be said. What all sessions keep is a part of the
// memory for requests, which is half of the setting memory.
const (
	mostFlights  = 64
	mostKeptOf   = 8 << 10  // bytes of one outcome, else the RESULT alone
	mostKeptAll  = 32 << 10 // bytes of a session
	mostKept     = 16 << 20 // bytes of all sessions
	keptShare    = 4
	outcomeBytes = 64 // that one takes beside its frames
)

func (o *outcome) bytes() int { return len(o.frames) + outcomeBytes }

// stateOf returns the state of a key, made when there is none; s.mu is held.
func (s *sessions) stateOf(key sessionKey) *sessionState {
	st := s.all[key]
	if st != nil {
		s.old.MoveToFront(st.place)
		s.of[key.caller].MoveToFront(st.mine)
		return st
	}
	mine := s.of[key.caller]
	if mine == nil {
		mine = list.New()
		s.of[key.caller] = mine
	}
	st = &sessionState{key: key}
	st.place, st.mine = s.old.PushFront(st), mine.PushFront(st)
	s.all[key] = st
	s.makeRoom(st, mine)
	return st
}

// makeRoom forgets sessions that are on no stream while there are too many; s.mu is held. Of a caller with more than half of them its
// own go, so that nobody who opens one after the other has those of all others forgotten.
func (s *sessions) makeRoom(st *sessionState, mine *list.List) {
	from := s.old
	if mine.Len() > mostSessions/2 {
		from = mine
	}
	for e := from.Back(); e != nil && len(s.all) > mostSessions; {
		before := e.Prev()
		if other := e.Value.(*sessionState); other.attached == nil && other != st {
			s.remove(other)
		}
		e = before
	}
}

// remember notes an outcome; s.mu is held.
func (s *sessions) remember(st *sessionState, o outcome) {
	st.settled = max(st.settled, o.last)
	st.kept = append(st.kept, o)
	st.bytes += o.bytes()
	s.kept += o.bytes()
	for len(st.kept) > mostFlights || st.bytes > mostKeptAll && len(st.kept) > 1 {
		s.kept -= st.kept[0].bytes()
		st.bytes -= st.kept[0].bytes()
		st.kept[0].frames = nil
		st.kept = st.kept[1:]
	}
	if s.kept > s.most {
		s.relieve()
	}
}

// relieve drops outcomes until half of what there may be is left, so that it is rarely needed: of those first that were not used for
// longest, and of sessions on a stream only when the others are not enough. They keep up to which sequence they are settled; s.mu is held.
func (s *sessions) relieve() {
	for _, attached := range []bool{false, true} {
		for e := s.old.Back(); e != nil && s.kept > s.most/2; e = e.Prev() {
			if st := e.Value.(*sessionState); (st.attached != nil) == attached {
				s.thin(st)
			}
		}
	}
}

// thin drops the outcomes of a session; s.mu is held.
func (s *sessions) thin(st *sessionState) {
	s.kept -= st.bytes
	st.kept, st.bytes = nil, 0
}
