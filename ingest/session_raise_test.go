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

// one has a session at accepted take an event, and end on its stream. It returns what it was opened with.
func one(g *sessionGate) *session.Hello {
	h := accepted("a")
	c := g.dial()
	c.welcome(h)
	c.events(1, `"one"`)
	c.until(isAck(session.Accepted, 1))
	c.close()
	<-time.After(time.Minute)
	return h
}

// A session that was at accepted and goes on at durable is told of nothing that it is durable before it is.
func TestSessionGoesOnAtAHigherLevelWhenItsEventsAreThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var safe []func()
		s := &fakeStream{accept: func(_ context.Context, b *event.Batch) error {
			b.Reach(event.Accepted)
			if b.Ack == event.Accepted {
				mu.Lock()
				defer mu.Unlock()
				safe = append(safe, b.Safe)
			}
			return nil
		}}
		g := serveSessions(t, s)
		defer g.end()
		log := &memoryLog{}
		g.sessions.Keep(log, true, time.Now())
		h := one(g)
		h.Level = session.Durable
		stored := time.Now().Add(time.Second)
		time.AfterFunc(time.Second, func() { mu.Lock(); defer mu.Unlock(); safe[0]() })
		d := g.dial()
		defer d.close()
		d.welcome(h)
		d.until(isAck(session.Durable, 1))
		if time.Now().Before(stored) {
			t.Error("what is accepted was said to be durable")
		}
		d.events(2, `"two"`)
		d.until(isAck(session.Durable, 2))
		other := newSessions(t.Context(), g.sessions.core, time.Second)
		restore(other, log.records)
		if p := other.stateOf(sessionKey{"", "s", "a"}); p.settled != 2 || p.durable != 2 {
			t.Errorf("another process has it settled up to %d, durable up to %d", p.settled, p.durable)
		}
	})
}

// One whose events do not become durable in time is told so, and can go on at accepted.
func TestSessionIsNotRaisedBeforeItsEventsAreDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeStream{accept: func(_ context.Context, b *event.Batch) error { b.Reach(event.Accepted); return nil }}
		g := serveSessions(t, s)
		defer g.end()
		h := one(g)
		d := g.dial()
		defer d.close()
		h.Level = session.Delivered
		d.send(h)
		if e, ok := d.frame().(*session.Error); !ok || e.Code != string(event.AckTimeout) || !e.Retryable {
			t.Errorf("%+v", e)
		}
		d.open()
		h.Level = session.Accepted
		if w := d.welcome(h); w.Settled != 1 {
			t.Errorf("settled up to %d", w.Settled)
		}
		d.events(2, `"two"`)
		d.until(isAck(session.Accepted, 2))

		e, f := g.dial(), g.dial() // who takes a session that waits has it
		defer e.close()
		defer f.close()
		h.Level = session.Durable
		e.send(h)
		<-time.After(time.Second)
		h.Level = session.Accepted
		if w := f.welcome(h); w.Settled != 2 {
			t.Errorf("settled up to %d", w.Settled)
		}
		if no, ok := e.frame().(*session.Error); !ok || no.Code != session.SessionTaken {
			t.Errorf("%+v", no)
		}
	})
}
