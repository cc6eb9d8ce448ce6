package ingest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/sdk/session"
)

// A second session that comes when the first runs begins within the time after which quiet connections are looked at, also behind one that
// stalls, and from then on further ones begin at once. While there is one, nobody waits for others.
func TestFurtherSessionsOfAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := serveSessions(t, &fakeStream{})
		defer g.end()
		c := g.dialFor(session.Protocol)
		defer c.close()
		c.open()
		c.welcome(hello("a"))
		first := *c
		first.str.Write(session.AppendEventsHead(nil, session.EventsHead{First: 1, Count: 1, Framing: session.Lines}, 100)) // and no more
		<-time.After(10 * lookAgain)
		for i, most := range []time.Duration{lookAgain, 0, 0} {
			began := time.Now()
			c.open()
			c.welcome(hello(string(rune('b' + i))))
			if took := time.Since(began); took > most+50*time.Millisecond { // and the way there and back
				t.Errorf("the session %d beside the first began after %v", i+1, took)
			}
		}
		first.str.Write(make([]byte, 99)) // ends it: that is no line of JSON
		first.str.Write([]byte{'\n'})
		c.open()
		c.welcome(hello("z"))
	})
}

// A second session whose stream comes before the first has its WELCOME begins at once, before quiet connections are looked at.
func TestASecondSessionBesideHelloBeginsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := serveSessions(t, &fakeStream{})
		defer g.end()
		c := g.dialFor(session.Protocol)
		defer c.close()
		c.open()
		first, text := *c, hello("a").Append(nil)
		first.str.Write(text[:1])
		<-time.After(30 * time.Millisecond) // it has come, and nobody accepts another one
		began := time.Now()
		c.open()
		c.send(hello("b"))
		<-time.After(30 * time.Millisecond)
		first.str.Write(text[1:])
		first.until(is[*session.Welcome])
		c.until(is[*session.Welcome])
		if took := time.Since(began); took > lookAgain/2 {
			t.Errorf("it began after %v", took)
		}
	})
}

// Sessions that come one after the other are all served where the first was; those that come together are, too.
func TestSessionsAfterTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := serveSessions(t, &fakeStream{})
		defer g.end()
		c := g.dialFor(session.Protocol)
		defer c.close()
		for range 3 {
			c.open()
			c.welcome(hello("a"))
			c.send(&session.Fin{})
			synctest.Wait()
		}
		var all []rawClient
		for range 4 {
			c.open()
			all = append(all, *c)
		}
		for i := range all {
			all[i].welcome(hello(string(rune('b' + i))))
		}
		if err := g.shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}
