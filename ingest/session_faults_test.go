package ingest

import (
	"io"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/headgate-io/headgate/sdk/session"
)

// Sequences that go back, come again or jump end the session with a word, and what came before them keeps its outcome.
func TestSequencesMustFollow(t *testing.T) {
	for name, next := range map[string]struct {
		first uint64
		code  string
	}{
		"again":        {4, session.BadSequence},
		"back":         {3, session.BadSequence},
		"to the start": {1, session.BadSequence},
		"a jump":       {7, session.BadSequence},
		"far away":     {1 << 62, session.BadSequence},
		"over the end": {1<<64 - 1, "bad_framing"},
	} {
		t.Run(name, func(t *testing.T) {
			inSession(t, &fakeStream{}, func(t *testing.T, g *sessionGate, c *rawClient) {
				c.t = t
				c.welcome(hello("a"))
				c.events(4, "4", "5").events(next.first, "x", "y")
				all := c.until(is[*session.Error])
				if e := all[len(all)-1].(*session.Error); e.Code != next.code || e.Retryable {
					t.Errorf("%+v", e)
				}
				if f := c.frame(); f != nil {
					t.Errorf("behind ERROR: %T%+v", f, f)
				}
				if !slices.ContainsFunc(all, isAck(session.Durable, 5)) || !slices.Equal(g.data(), []string{"4", "5"}) {
					t.Errorf("stored %q; %s", g.data(), described(all))
				}
			})
		})
	}
}

// A stream that is reset in the middle of an event is a client that went away: nothing of the frame is taken, and the session goes
// on elsewhere.
func TestResetInTheMiddleOfAnEvent(t *testing.T) {
	inSession(t, &fakeStream{}, func(t *testing.T, g *sessionGate, c *rawClient) {
		c.welcome(hello("a"))
		c.events(1, "1")
		c.until(isAck(session.Durable, 1))
		head := session.AppendEventsHead(nil, session.EventsHead{First: 2, Count: 2, Framing: session.Lines}, 8)
		if _, err := c.str.Write(append(head, "2\n{\"n"...)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		c.str.CancelWrite(7)
		if _, err := io.Copy(io.Discard, c.in); err != nil {
			t.Errorf("the gateway's side: %v", err)
		}
		c.open()
		if w := c.welcome(hello("a")); w.Settled != 1 {
			t.Errorf("settled %d", w.Settled)
		}
		c.events(2, "2", "{\"n\":3}").send(&session.Fin{})
		c.until(is[*session.Fin])
		if got := g.data(); !slices.Equal(got, []string{"1", "2", "{\"n\":3}"}) {
			t.Errorf("stored %q", got)
		}
	})
}

// Who has no good token is told, before there is a session.
func TestSessionsNeedTheirToken(t *testing.T) {
	for _, token := range []string{"", "bad", "good\r\nX: y", "good"} {
		synctest.Test(t, func(t *testing.T) {
			g := serveSessions(t, &fakeStream{}, guarded)
			defer g.end()
			c := g.dial()
			defer c.close()
			h := hello("a")
			h.Token = token
			switch f := c.send(h).frame().(type) {
			case *session.Welcome:
				if token != "good" {
					t.Errorf("welcome with %q", token)
				}
				c.send(&session.Fin{})
				c.until(is[*session.Fin])
			case *session.Error:
				if token == "good" || f.Code != "unauthorized" || f.Retryable {
					t.Errorf("%q: %+v", token, f)
				}
			default:
				t.Errorf("%T%+v", f, f)
			}
		})
	}
}
