package ingest

import (
	"container/list"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/window"
	"github.com/headgate-io/headgate/sdk/session"
)

// Memory is what outlives the process: of sessions, or a window of ids or answers (*window.Set, *window.Keys). Restore takes over the records of an earlier one, then Keep has everything from
// then on kept in a log, and Snapshot says all that there is.
type Memory interface {
	Restore(record []byte, now time.Time)
	Keep(log window.Log, whole bool, now time.Time)
	Snapshot(emit func(record []byte) error) error
}

// Sessions is the memory of the sessions of producers; nil where QUIC is not spoken.
func (s *Server) Sessions() Memory {
	if s.quic == nil {
		return nil
	}
	return s.quic.sessions
}

// sessions are those of all connections over headgate/1, those that have gone included.
type sessions struct {
	core *core
	ctx  context.Context // in which batches are accepted
	wait time.Duration   // for the next byte of a frame
	age  time.Duration   // of a connection, then its sessions go on on another one; 0: no limit

	datagrams *prometheus.CounterVec
	quiet     quiet // connections of which no session takes datagrams

	here  atomic.Int64 // sessions on streams
	crowd int64        // of those, how many there are before a connection may only have one

	accepting context.Context // ends when no further streams are taken
	stop      context.CancelFunc

	most int // bytes of outcomes that all sessions may keep

	mu   sync.Mutex // guards the rest, and the state of each session
	all  map[sessionKey]*sessionState
	old  *list.List            // of *sessionState, the one that was used last in front
	of   map[string]*list.List // the same of each caller
	kept int                   // bytes of outcomes
	log  window.Log            // nil: nothing is kept
	open map[*attachment]struct{}
}

// sessionKey is who a session belongs to, and what it is called there.
type sessionKey struct{ caller, stream, name string }

// sessionState is what is known of a session, whatever stream it is on.
type sessionState struct {
	key       sessionKey
	place     *list.Element // in old
	mine      *list.Element // in of its caller
	attached  *attachment   // nil: it is on no stream now
	settled   uint64        // every event up to it has its outcome
	kept      []outcome     // the last ones, for a client that did not hear them
	bytes     int           // that kept takes
	durable   uint64        // every event up to it is durable, as far as that was asked for or seen
	delivered uint64        // every event up to it is delivered, as far as that was asked for
	coming    []*stretch    // what is accepted behind it

	forgotten bool // events are lost that it was told are safe: it ends, and the next one of its name is new
}

// outcome is what is said of an EVENTS frame.
type outcome struct {
	last   uint64 // sequence of its last event
	frames []byte // REJECT and RESULT
}

func newSessions(ctx context.Context, c *core, wait time.Duration) *sessions {
	s := &sessions{core: c, ctx: ctx, wait: wait, all: map[sessionKey]*sessionState{}, old: list.New(), of: map[string]*list.List{}, most: mostKept, open: map[*attachment]struct{}{}, crowd: mostCrowd}
	if c != nil {
		s.most = int(min(mostKept, c.budget.Limit()/keptShare))
	}
	s.datagrams = newDatagramCounters()
	s.accepting, s.stop = context.WithCancel(ctx)
	return s
}

// attach puts a session on a stream. One that it is on already is ended first, and what was taken from there is waited
// for, so that everything up to settled has its outcome, and nothing behind it is here.
func (s *sessions) attach(ctx context.Context, key sessionKey, a *attachment) (*sessionState, error) {
	for {
		s.mu.Lock()
		st := s.stateOf(key)
		before := st.attached
		if before == nil {
			st.attached = a
			s.mu.Unlock()
			return st, nil
		}
		s.mu.Unlock()
		before.end(&session.Error{Code: session.SessionTaken, Detail: "another stream has gone on with this session"})
		select {
		case <-before.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *sessions) detach(st *sessionState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.attached = nil; st.forgotten {
		s.remove(st)
	}
}

// settle notes the outcome of what comes next in a session, and has it kept where it is durable.
func (s *sessions) settle(st *sessionState, o outcome, level event.Level) {
	s.mu.Lock()
	defer s.mu.Unlock()
	durable := level >= event.Durable
	st.reached(o, level)
	s.remember(st, o)
	if durable && len(st.coming) == 0 {
		st.durable = max(st.durable, o.last)
	}
	if s.log != nil && durable && !st.forgotten {
		s.log.Append(st.record(o))
	}
}

// missed appends the outcomes behind a sequence.
func (s *sessions) missed(dst []byte, st *sessionState, acked uint64) ([]byte, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.forgotten {
		return dst, 0
	}
	for _, o := range st.kept {
		if o.last > acked {
			dst = append(dst, o.frames...)
		}
	}
	return dst, st.settled
}

// record is what is kept of an outcome.
func (st *sessionState) record(o outcome) []byte {
	var dst []byte
	for _, text := range []string{st.key.caller, st.key.stream, st.key.name} {
		dst = append(binary.AppendUvarint(dst, uint64(len(text))), text...)
	}
	return append(st.appendDelivered(binary.AppendUvarint(dst, o.last)), o.frames...)
}

// Restore implements Memory. A record that is none is a session that is forgotten, as if it were old.
func (s *sessions) Restore(record []byte, _ time.Time) {
	var texts [3]string
	for i := range texts {
		n, size := binary.Uvarint(record)
		if size <= 0 || n > uint64(len(record)-size) {
			return
		}
		texts[i], record = string(record[size:][:n]), record[size+int(n):]
	}
	last, size := binary.Uvarint(record)
	if size <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if texts[2] == "" {
		s.drop(texts[1])
		return
	}
	st := s.stateOf(sessionKey{texts[0], texts[1], texts[2]})
	delivered, frames := cutDelivered(record[size:])
	st.delivered = max(st.delivered, delivered)
	if last > st.settled {
		st.durable = last
		s.remember(st, outcome{last, append([]byte(nil), frames...)})
	}
}

// Keep implements Memory.
func (s *sessions) Keep(log window.Log, _ bool, _ time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = log
}

// Snapshot implements Memory: what was not used for longest comes first.
func (s *sessions) Snapshot(emit func(record []byte) error) error {
	s.mu.Lock()
	var all [][]byte
	for e := s.old.Back(); e != nil; e = e.Prev() {
		st := e.Value.(*sessionState)
		if st.forgotten {
			continue
		}
		last := uint64(0)
		for _, o := range st.kept {
			if o.last <= st.durable { // else it may not be kept
				all, last = append(all, st.record(o)), o.last
			}
		}
		if st.durable > last {
			all = append(all, st.record(outcome{last: st.durable}))
		}
	}
	s.mu.Unlock()
	for _, record := range all {
		if err := emit(record); err != nil {
			return err
		}
	}
	return nil
}

func (s *sessions) flush() {
	s.mu.Lock()
	log := s.log
	s.mu.Unlock()
	if log != nil {
		log.Flush()
	}
}

// watch exports how many sessions there are.
func (s *sessions) watch(reg prometheus.Registerer) error {
	gauge := func(name, help string, of func() int) error {
		return reg.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			s.mu.Lock()
			defer s.mu.Unlock()
			return float64(of())
		}))
	}
	err := errors.Join(reg.Register(s.datagrams),
		gauge("headgate_quic_sessions", "Sessions of producers over headgate/1 that are on a stream.", func() int { return len(s.open) }),
		gauge("headgate_quic_sessions_remembered", "Sessions that can be gone on with, those on a stream included.", func() int { return len(s.all) }))
	if err != nil {
		return fmt.Errorf("register metrics of sessions: %w", err)
	}
	return nil
}

// The levels are the same numbers on both sides.
var _ = [1]struct{}{}[event.Level(session.Delivered)-event.Delivered]
