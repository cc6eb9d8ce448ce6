package ingest

import (
	"encoding/binary"

	"github.com/headgate-io/headgate/sdk/session"
)

// ForgetSessions forgets the sessions of a stream, and ends those that are on a stream of a connection: events are lost that they were
// told are safe. A client that goes on with one finds nothing settled, and in its log that is so after a restart too.
func (s *Server) ForgetSessions(stream string) (n int) {
	if s.quic == nil {
		return 0
	}
	return s.quic.sessions.forgetStream(stream)
}

func (s *sessions) forgetStream(stream string) (n int) {
	s.mu.Lock()
	attached, n := s.drop(stream)
	if s.log != nil && n > 0 {
		s.log.Append(forgetRecord(stream))
	}
	s.mu.Unlock()
	for _, a := range attached {
		a.end(&session.Error{Retryable: true, Code: session.EventsLost,
			Detail: "events of the stream are lost that were acknowledged; the session begins anew: what the producer still has of them is to be sent again"})
	}
	s.flush()
	return n
}

// drop takes the sessions of a stream out, but those that are attached: they go when they are detached; s.mu is held.
func (s *sessions) drop(stream string) (attached []*attachment, n int) {
	for key, st := range s.all {
		if key.stream != stream || st.forgotten {
			continue
		}
		n++
		if st.forgotten = true; st.attached != nil {
			attached = append(attached, st.attached)
			continue
		}
		s.remove(st)
	}
	return attached, n
}

func (s *sessions) isForgotten(st *sessionState) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return st.forgotten
}

// remove takes a session out; s.mu is held.
func (s *sessions) remove(st *sessionState) {
	if s.all[st.key] == st {
		s.old.Remove(st.place)
		delete(s.all, st.key)
		if mine := s.of[st.key.caller]; mine.Len() > 1 {
			mine.Remove(st.mine)
		} else {
			delete(s.of, st.key.caller)
		}
		s.thin(st)
	}
}

// forgetRecord is kept of a stream whose sessions are forgotten: no session has an empty name.
func forgetRecord(stream string) []byte {
	dst := append(binary.AppendUvarint([]byte{0}, uint64(len(stream))), stream...)
	return append(dst, 0, 0)
}
