package ingest

import (
	"testing"
	"testing/synctest"

	"github.com/headgate-io/headgate/sdk/session"
)

// J06: when very many sessions are open, a connection has one, and so everybody has that.
func TestJ06SessionsOfACrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := serveSessions(t, &fakeStream{})
		defer g.end()
		g.sessions.crowd = 2
		greedy := g.dial()
		defer greedy.close()
		greedy.welcome(hello("a"))
		greedy.open()
		greedy.welcome(hello("b"))
		second := *greedy
		greedy.open()
		if e, ok := greedy.send(hello("c")).frame().(*session.Error); !ok || e.Code != "overloaded" || !e.Retryable || greedy.frame() != nil {
			t.Errorf("a third session of one connection: %+v", e)
		}
		other := g.dial()
		defer other.close()
		other.welcome(hello("d"))
		other.events(1, "1").send(&session.Fin{})
		other.until(is[*session.Fin])
		second.send(&session.Fin{})
		second.until(is[*session.Fin])
		synctest.Wait()
		greedy.open()
		greedy.welcome(hello("c"))
	})
	synctest.Test(t, func(t *testing.T) {
		g := serveSessions(t, &fakeStream{})
		g.dial().close()
		g.end()
		if n := g.sessions.here.Load(); n != 0 {
			t.Errorf("%d sessions are counted", n)
		}
	})
}

// Sessions over WebTransport count as those of their connection.
func TestJ06PagesOfACrowd(t *testing.T) {
	g, at := servePages(t, &fakeStream{})
	g.Server.quic.sessions.crowd = 1
	p := openPage(t, at)
	_, c := p.session()
	c.welcome(hello("a"))
	_, d := p.session()
	if e, ok := d.frame().(*session.Error); !ok || e.Code != "overloaded" {
		t.Errorf("%+v", e)
	}
	_, e := openPage(t, at).session()
	e.welcome(hello("c"))
}
