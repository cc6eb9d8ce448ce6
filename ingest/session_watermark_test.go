package ingest

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/sdk/session"
)

// A session at accepted hears how far its events are durable: in order, whatever becomes durable first, over its streams, and
// with what an earlier process kept.
func TestAcceptedSessionsHearOfDurability(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		safe := map[string]func(){}
		s := &fakeStream{accept: func(_ context.Context, b *event.Batch) error {
			b.Reach(event.Accepted)
			mu.Lock()
			defer mu.Unlock()
			if name := string(b.Events[0].Data); name == `"at once"` {
				b.Safe()
			} else {
				safe[name] = b.Safe
			}
			return nil
		}}
		store := func(name string) { mu.Lock(); defer mu.Unlock(); safe[name]() }
		g := serveSessions(t, s)
		defer g.end()
		log := &memoryLog{}
		g.sessions.Keep(log, true, time.Now())
		said := func(all []session.Frame) (upTo uint64) {
			for _, f := range all {
				if a, ok := f.(*session.Ack); ok && a.Level == session.Durable {
					upTo = a.UpTo
				}
			}
			return upTo
		}
		h := hello("a")
		h.Level = session.Accepted
		c := g.dial()
		defer c.close()
		c.welcome(h)
		c.events(1, `"one"`)
		c.events(2, `"two"`)
		c.events(3, `"at once"`)
		if got := said(c.until(isAck(session.Accepted, 3))); got != 0 {
			t.Errorf("durable up to %d before anything is", got)
		}
		store(`"two"`)
		<-time.After(time.Second)
		store(`"one"`)
		if got := said(c.until(isAck(session.Durable, 3))); got != 3 {
			t.Errorf("durable up to %d", got)
		}
		c.events(4, `"four"`)
		c.until(isAck(session.Accepted, 4))
		c.close()
		<-time.After(time.Minute)

		d := g.dial() // on another stream what was accepted before still counts
		defer d.close()
		if w := d.welcome(h); w.Settled != 4 {
			t.Errorf("settled %d", w.Settled)
		}
		d.events(5, `"at once"`)
		if got := said(d.until(isAck(session.Accepted, 5))); got != 3 {
			t.Errorf("durable up to %d while 4 is not", got)
		}
		var snapshot [][]byte
		if err := g.sessions.Snapshot(func(r []byte) error { snapshot = append(snapshot, append([]byte(nil), r...)); return nil }); err != nil {
			t.Fatal(err)
		}
		for what, records := range map[string][][]byte{"log": log.records, "snapshot": snapshot} {
			other := newSessions(t.Context(), g.sessions.core, time.Second)
			restore(other, records)
			if p := other.stateOf(sessionKey{"", "s", "a"}); p.settled != 3 {
				t.Errorf("another process has it settled up to %d by the %s, only 3 is durable", p.settled, what)
			}
		}
		store(`"four"`)
		d.until(isAck(session.Durable, 5))
	})
}

// Of frames without number the watermark holds a bounded list, and is late rather than wrong.
func TestWatermarkIsBounded(t *testing.T) {
	s := newSessions(t.Context(), nil, 0)
	p := s.stateOf(sessionKey{"", "s", "a"})
	const n = 3 * mostStretches
	var all []*flight
	for i := range uint64(n) {
		f := &flight{head: session.EventsHead{First: i + 1, Count: 1}}
		s.follow(p, f)
		all = append(all, f)
	}
	if len(p.coming) > mostStretches {
		t.Errorf("%d stretches", len(p.coming))
	}
	for i, f := range all {
		s.safe(p, f)
		if p.durable > uint64(i+1) {
			t.Fatalf("durable up to %d when %d are", p.durable, i+1)
		}
	}
	if p.durable != n || len(p.coming) > 0 {
		t.Errorf("durable up to %d of %d", p.durable, n)
	}
}

// Frames that are not told apart any more are not forgotten when those behind them come again, whose outcome was lost; and those that
// came again hold nothing up that is durable.
func TestWatermarkOfFramesThatComeAgain(t *testing.T) {
	s := newSessions(t.Context(), nil, 0)
	p := s.stateOf(sessionKey{"", "s", "a"})
	const n, again = 2 * mostStretches, mostStretches + mostStretches/2 // frames; the sequence from which they come again
	frame := func(seq uint64) *flight { return &flight{head: session.EventsHead{First: seq, Count: 1}} }
	first := map[uint64]*flight{}
	for seq := uint64(1); seq <= n; seq++ {
		f := frame(seq)
		first[seq] = f
		if s.follow(p, f); seq >= again {
			s.miss(f)
		}
	}
	s.safe(p, first[again]) // it was stored, only nobody knew in time
	early := frame(again)   // and one is lost before it is followed
	s.miss(early)
	s.follow(p, early)
	second := map[uint64]*flight{again: frame(again)}
	for seq := uint64(again); seq <= n; seq++ {
		if second[seq] == nil {
			second[seq] = frame(seq)
		}
		s.follow(p, second[seq])
	}
	for seq := uint64(n); seq >= again; seq-- {
		s.safe(p, second[seq])
	}
	for seq := uint64(1); seq < again; seq++ {
		if p.durable >= seq {
			t.Fatalf("durable up to %d when %d is not", p.durable, seq)
		}
		s.safe(p, first[seq])
	}
	if p.durable != n || len(p.coming) > 0 {
		t.Errorf("durable up to %d of %d, %d stretches are left", p.durable, n, len(p.coming))
	}
	s.safe(p, first[n]) // late, without effect
	if p.durable != n || len(p.coming) > 0 {
		t.Errorf("durable up to %d of %d", p.durable, n)
	}
}
