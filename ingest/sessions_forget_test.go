package ingest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/sdk/session"
)

// A loss ends the sessions of its stream, on a connection or not, and nothing is settled in the next ones of their names: now, and
// behind a restart. Other streams' sessions are as they were.
func TestSessionsAreForgottenWithALoss(t *testing.T) {
	log := &memoryLog{}
	synctest.Test(t, func(t *testing.T) {
		g := serveSessions(t, &fakeStream{})
		defer g.end()
		g.sessions.Keep(log, true, time.Now())
		here, away := g.dial(), g.dial()
		defer here.close()
		here.welcome(hello("here"))
		here.events(1, "1", "2").until(isAck(session.Durable, 2))
		away.welcome(hello("away"))
		away.events(1, "1").until(isAck(session.Durable, 1))
		away.close()
		synctest.Wait()
		if n := g.sessions.forgetStream("t"); n != 0 {
			t.Errorf("%d sessions of another stream", n)
		}
		if n := g.sessions.forgetStream("s"); n != 2 || log.unflushed > 0 {
			t.Errorf("%d sessions are forgotten, %d records not flushed", n, log.unflushed)
		}
		all := here.until(is[*session.Error])
		if e := all[len(all)-1].(*session.Error); e.Code != session.EventsLost || !e.Retryable {
			t.Errorf("%+v", e)
		}
		for _, name := range []string{"here", "away"} {
			c := g.dial()
			h := hello(name)
			h.Acked = 2
			if w := c.welcome(h); w.Settled != 0 {
				t.Errorf("%s: settled %d", name, w.Settled)
			}
			c.events(3, "3").until(isAck(session.Durable, 3))
			c.close()
		}
	})
	synctest.Test(t, func(t *testing.T) {
		g := serveSessions(t, &fakeStream{})
		defer g.end()
		restore(g.sessions, log.records[:3]) // up to the loss
		c := g.dial()
		defer c.close()
		if w := c.welcome(hello("here")); w.Settled != 0 {
			t.Errorf("behind a restart: settled %d", w.Settled)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		g := serveSessions(t, &fakeStream{})
		defer g.end()
		restore(g.sessions, log.records)
		c := g.dial()
		defer c.close()
		if w := c.welcome(hello("here")); w.Settled != 3 {
			t.Errorf("what came behind the loss is forgotten, too: settled %d", w.Settled)
		}
	})
}
