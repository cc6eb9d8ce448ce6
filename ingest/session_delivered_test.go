package ingest

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/event"
	sdk "github.com/headgate-io/headgate/sdk/client"
	"github.com/headgate-io/headgate/sdk/session"
)

// undelivered keeps everything, and of the event "2" it is never known that it is delivered.
func undelivered() *fakeStream {
	return &fakeStream{accept: func(_ context.Context, b *event.Batch) error {
		b.Reach(event.Accepted)
		if b.Ack < event.Delivered || len(b.Events) == 0 || string(b.Events[0].Data) != "2" {
			return nil
		}
		return &event.Problem{Code: event.AckTimeout, Stored: event.StoredDurable, Detail: "not delivered"}
	}}
}

// most is the highest sequence that is acknowledged at a level.
func most(all []session.Frame, l session.Level) (upTo uint64) {
	for _, f := range all {
		if a, ok := f.(*session.Ack); ok && a.Level == l {
			upTo = max(upTo, a.UpTo)
		}
	}
	return upTo
}

// What came to durable only is never said to be delivered: not on the stream, not to a client that goes on and knows less, and not behind
// a restart; results say of what follows that it is.
func TestDeliveredStaysBehindWhatIsDurable(t *testing.T) {
	log := &memoryLog{}
	hello := hello("a")
	hello.Level = session.Delivered
	check := func(t *testing.T, where string, all []session.Frame, durable uint64) {
		t.Helper()
		if got := most(all, session.Delivered); got > 1 || most(all, session.Durable) != durable {
			t.Errorf("%s: delivered up to %d: %s", where, got, described(all))
		}
	}
	synctest.Test(t, func(t *testing.T) {
		g := serveSessions(t, undelivered())
		g.sessions.Keep(log, true, time.Now())
		c := g.dial()
		c.welcome(hello)
		c.events(1, "1")
		if all := c.until(isAck(session.Delivered, 1)); most(all, session.Durable) > 1 {
			t.Errorf("%s", described(all))
		}
		c.events(2, "2").events(3, "3")
		check(t, "the stream", c.until(isAck(session.Durable, 3)), 3)
		c.close()
		<-time.After(time.Minute)
		for _, acked := range []uint64{0, 1, 2} {
			hello.Acked = acked
			d := g.dial()
			if w := d.welcome(hello); w.Settled != 3 {
				t.Errorf("settled up to %d", w.Settled)
			}
			all := d.until(isAck(session.Durable, 3))
			check(t, "going on", all, 3)
			if acked == 0 && most(all, session.Delivered) != 1 {
				t.Errorf("what was delivered: %s", described(all))
			}
			d.close()
			<-time.After(time.Minute)
		}
		hello.Acked = 3
		d := g.dial()
		d.welcome(hello)
		d.events(4, "4")
		all := d.until(isAck(session.Durable, 4))
		check(t, "what follows", all, 4)
		if !slices.ContainsFunc(all, func(f session.Frame) bool { r, ok := f.(*session.Result); return ok && r.Level == session.Delivered }) {
			t.Errorf("%s", described(all))
		}
		d.close()
		g.end()
	})
	synctest.Test(t, func(t *testing.T) {
		g := serveSessions(t, undelivered())
		defer g.end()
		restore(g.sessions, log.records)
		hello.Acked = 0
		c := g.dial()
		defer c.close()
		c.welcome(hello)
		all := c.until(isAck(session.Durable, 4))
		check(t, "a restart", all, 4)
		results := 0
		for _, f := range all {
			if _, ok := f.(*session.Result); ok {
				results++
			}
		}
		if most(all, session.Delivered) != 1 || results != 4 {
			t.Errorf("behind a restart: %s", described(all))
		}
	})
}

// A session that is delivered goes on being acknowledged as delivered, on other streams and behind a restart.
func TestDeliveredGoesOn(t *testing.T) {
	log := &memoryLog{}
	hello := hello("a")
	hello.Level = session.Delivered
	synctest.Test(t, func(t *testing.T) {
		g := serveSessions(t, &fakeStream{})
		g.sessions.Keep(log, true, time.Now())
		for seq := uint64(1); seq <= 2; seq++ {
			c := g.dial()
			c.welcome(hello)
			if seq > 1 {
				c.until(isAck(session.Delivered, seq-1))
			}
			c.events(seq, "1")
			c.until(isAck(session.Delivered, seq))
			c.close()
			<-time.After(time.Minute)
		}
		g.end()
	})
	synctest.Test(t, func(t *testing.T) {
		g := serveSessions(t, &fakeStream{})
		defer g.end()
		restore(g.sessions, log.records)
		c := g.dial()
		defer c.close()
		c.welcome(hello)
		c.until(isAck(session.Delivered, 2))
		c.events(3, "3")
		c.until(isAck(session.Delivered, 3))
	})
}

// The client learns of each batch how far it came, also behind one that came to durable only.
func TestClientBehindWhatIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := serveSessions(t, undelivered())
		defer g.end()
		c := g.client(func(cfg *sdk.Config) { cfg.Level = session.Delivered })
		for i, want := range []session.Level{session.Delivered, session.Durable, session.Delivered, session.Delivered} {
			b, err := c.Send(t.Context(), []byte{byte('1' + i)})
			if err != nil {
				t.Fatal(err)
			}
			if r, err := b.Wait(t.Context()); err != nil || r.Level != want {
				t.Errorf("%d: %+v, %v", i, r, err)
			}
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
