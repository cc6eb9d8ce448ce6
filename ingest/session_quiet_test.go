package ingest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/headgate-io/headgate/sdk/session"
)

// Datagrams of a connection on which no session takes any are looked at, dropped and counted, and nobody waits for them; who has a
// session that takes them is waited for.
func TestDatagramsThatNobodyTakesAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := serveSessions(t, &fakeStream{})
		defer g.end()
		c := g.dialFor(session.Protocol)
		defer c.close()
		c.open()
		c.welcome(hello("a"))
		for range 100 {
			c.fire("1")
		}
		if err := c.conn.SendDatagram([]byte{0x80}); err != nil {
			t.Error(err)
		}
		g.want("nobody takes them", map[string]int{datagramUnknown: 100, datagramMalformed: 1})
		first := *c
		c.open()
		c.welcome(&session.Hello{Version: session.Version, Stream: "s", Session: "b", Level: session.Accepted})
		c.fire("2")
		first.fire("3")
		g.want("one takes them", map[string]int{datagramUnknown: 101, datagramMalformed: 1, datagramTaken: 1})
		if n := len(g.sessions.quiet.all); n != 0 {
			t.Errorf("%d connections are looked at", n)
		}
		other := g.dialFor(session.Protocol)
		synctest.Wait()
		<-time.After(time.Second)
		if n := len(g.sessions.quiet.all); n != 1 {
			t.Errorf("%d connections are looked at, one is", n)
		}
		other.close()
		<-time.After(2 * sessionConnIdle)
		synctest.Wait()
		if n := len(g.sessions.quiet.all); n != 0 {
			t.Errorf("%d connections are looked at that have gone", n)
		}
	})
}

// A connection over HTTP/3 ends when it is old and no request runs on it, also while one on which a header does not end.
func TestHTTP3ConnectionsGetOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := serveSessions(t, &fakeStream{})
		defer g.end()
		g.h3.age = 20 * time.Second
		began := time.Now()
		c := g.dialFor(protocolH3)
		defer c.close()
		c.open()
		c.str.Write([]byte{1, 0x40, 0x64})
		<-c.conn.Context().Done()
		if took := time.Since(began); took < g.h3.age || took > g.h3.age+settled {
			t.Errorf("it ended after %v", took)
		}
		if e, ok := errors.AsType[*quic.ApplicationError](context.Cause(c.conn.Context())); !ok || e.ErrorCode != quic.ApplicationErrorCode(http3.ErrCodeNoError) {
			t.Errorf("%v", context.Cause(c.conn.Context()))
		}
		synctest.Wait()
		if n := g.h3.count() + len(g.sessions.quiet.all); n != 0 {
			t.Errorf("%d are known", n)
		}
	})
}
