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

// producer returns that of a key, made when there is none; s.mu is held.
func (s *sessions) producer(key sessionKey) *producer {
	p := s.all[key]
	if p != nil {
		s.old.MoveToFront(p.place)
		s.of[key.caller].MoveToFront(p.mine)
		return p
	}
	mine := s.of[key.caller]
	if mine == nil {
		mine = list.New()
		s.of[key.caller] = mine
	}
	p = &producer{key: key}
	p.place, p.mine = s.old.PushFront(p), mine.PushFront(p)
	s.all[key] = p
	s.makeRoom(p, mine)
	return p
}

// makeRoom forgets sessions that are on no stream while there are too many; s.mu is held. Of a caller with more than half of them its
// own go, so that nobody who opens one after the other has those of all others forgotten.
func (s *sessions) makeRoom(p *producer, mine *list.List) {
	from := s.old
	if mine.Len() > mostSessions/2 {
		from = mine
	}
	for e := from.Back(); e != nil && len(s.all) > mostSessions; {
		before := e.Prev()
		if other := e.Value.(*producer); other.attached == nil && other != p {
			s.remove(other)
		}
		e = before
	}
}

// remember notes an outcome; s.mu is held.
func (s *sessions) remember(p *producer, o outcome) {
	p.settled = max(p.settled, o.last)
	p.kept = append(p.kept, o)
	p.bytes += o.bytes()
	s.kept += o.bytes()
	for len(p.kept) > mostFlights || p.bytes > mostKeptAll && len(p.kept) > 1 {
		s.kept -= p.kept[0].bytes()
		p.bytes -= p.kept[0].bytes()
		p.kept[0].frames = nil
		p.kept = p.kept[1:]
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
			if p := e.Value.(*producer); (p.attached != nil) == attached {
				s.thin(p)
			}
		}
	}
}

// thin drops the outcomes of a session; s.mu is held.
func (s *sessions) thin(p *producer) {
	s.kept -= p.bytes
	p.kept, p.bytes = nil, 0
}
