package ingest

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate-io/headgate/event"
)

// What is remembered of all sessions together is bounded, whoever opens how many; what is dropped is what was said of frames, never
// up to where a session is settled.
func TestOutcomesOfSessionsHaveBoundedMemory(t *testing.T) {
	s := newSessions(t.Context(), nil, time.Second)
	s.most = 1 << 20
	log := &memoryLog{}
	s.Keep(log, true, time.Now())
	const n = 1000
	for i := range n {
		p := s.stateOf(sessionKey{caller: "a", stream: "s", name: fmt.Sprint(i)})
		for k := range uint64(8) {
			s.settle(p, outcome{last: k + 1, frames: make([]byte, 1<<10)}, event.Durable)
		}
	}
	held := 0
	for _, p := range s.all {
		size := 0
		for _, o := range p.kept {
			size += len(o.frames) + outcomeBytes
		}
		if size != p.bytes {
			t.Fatalf("session %s keeps %d bytes and counts %d", p.key.name, size, p.bytes)
		}
		held += size
	}
	if held > s.most || held < s.most/4 || held != s.kept {
		t.Errorf("%d bytes are kept, %d counted, %d may be", held, s.kept, s.most)
	}
	written := 0
	if err := s.Snapshot(func(r []byte) error { written += len(r); return nil }); err != nil || written > 2*s.most {
		t.Errorf("the snapshot has %d bytes, %v", written, err)
	}
	again := newSessions(t.Context(), nil, time.Second)
	again.most = s.most
	if err := s.Snapshot(func(r []byte) error { again.Restore(r, time.Now()); return nil }); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		key := sessionKey{caller: "a", stream: "s", name: fmt.Sprint(i)}
		if now, then := s.stateOf(key).settled, again.stateOf(key).settled; now != 8 || then != 8 {
			t.Fatalf("session %d is settled up to %d, after a restart up to %d", i, now, then)
		}
	}
	if last := s.stateOf(sessionKey{caller: "a", stream: "s", name: fmt.Sprint(n - 1)}); len(last.kept) != 8 {
		t.Errorf("of the session used last %d outcomes are kept", len(last.kept))
	}
	s.forgetStream("s")
	if s.kept != 0 || len(s.all) != 0 || s.old.Len() != 0 || len(s.of) != 0 {
		t.Errorf("%d bytes of no sessions: %d, %d, %d", s.kept, len(s.all), s.old.Len(), len(s.of))
	}
}

// A caller that opens one session after the other has its own forgotten.
func TestSessionsOfOthersAreNotForgotten(t *testing.T) {
	s := newSessions(t.Context(), nil, time.Second)
	for i := range mostSessions / 4 {
		s.stateOf(sessionKey{caller: "b", name: fmt.Sprint(i)}).settled = 1
	}
	for i := range 2 * mostSessions {
		s.stateOf(sessionKey{caller: "a", name: fmt.Sprint(i)}).settled = 1
	}
	for i := range mostSessions / 4 {
		if p := s.all[sessionKey{caller: "b", name: fmt.Sprint(i)}]; p == nil {
			t.Fatalf("session %d of another caller is forgotten", i)
		}
	}
	if len(s.all) != mostSessions || s.of["a"].Len() != mostSessions*3/4 {
		t.Errorf("%d sessions, %d of one caller", len(s.all), s.of["a"].Len())
	}
}
