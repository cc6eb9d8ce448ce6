package ingest

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/lossy"
	sdk "github.com/headgate-io/headgate/sdk/client"
	"github.com/headgate-io/headgate/sdk/session"
)

func (g *sessionGate) datagramClient(now **lossy.Endpoint) *sdk.Datagrams {
	g.t.Helper()
	d, err := sdk.NewDatagrams(sdk.Config{Address: g.at.LocalAddr().String(), Stream: "s", Framing: session.JSON, TLS: &tls.Config{InsecureSkipVerify: true},
		Listen: func() (net.PacketConn, error) { *now = g.Endpoint(host(3)); return *now, nil }})
	if err != nil {
		g.t.Fatal(err)
	}
	return d
}

// The client of the SDK sends datagrams, says which cannot be sent, and comes back when the connection is lost.
func TestClientSendsDatagrams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := serveSessions(t, &fakeStream{})
		defer g.end()
		var at *lossy.Endpoint
		d := g.datagramClient(&at)
		defer d.Close()
		if err := d.Send([]byte("0")); err != sdk.ErrNoConnection {
			t.Errorf("without a connection: %v", err)
		}
		if err := d.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := d.Send([]byte("1"), []byte(`"two"`)); err != nil {
			t.Error(err)
		}
		large, ok := errors.AsType[*sdk.TooLargeError](d.Send(make([]byte, 5000)))
		if !ok || large.Size < 5000 || large.Most < 1000 || large.Most > 1500 {
			t.Errorf("too large: %+v", large)
		}
		<-time.After(time.Second)
		at.Close() // the network of the client is gone; what is sent is lost, until there is another
		<-time.After(2 * time.Minute)
		if err := d.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := d.Send([]byte("3")); err != nil {
			t.Error(err)
		}
		<-time.After(time.Second)
		if got := g.data(); !slices.Equal(got, []string{"1", `"two"`, "3"}) {
			t.Errorf("stored %q", got)
		}
	})
}

// A stream that promises more takes none, and the client learns it.
func TestDatagramsAreRefusedWhereAcceptedIsTooLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := serveSessions(t, &fakeStream{settings: Settings{AckMin: event.Durable}})
		defer g.end()
		var at *lossy.Endpoint
		d := g.datagramClient(&at)
		defer d.Close()
		if err := d.Ready(t.Context()); err == nil {
			t.Error("it is ready")
		}
		if err := d.Send([]byte("1")); err == nil || err == sdk.ErrNoConnection {
			t.Errorf("%v", err)
		}
	})
}

// A client that does nothing but keep its connection open does not keep it for long.
func TestF56ConnectionsWithoutASessionAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := serveSessions(t, &fakeStream{})
		defer g.end()
		at := g.Endpoint(host(4))
		tr := &quic.Transport{Conn: at}
		conn, err := tr.Dial(t.Context(), g.at.LocalAddr(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{session.Protocol}}, &quic.Config{KeepAlivePeriod: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		c := &rawClient{t: t, conn: conn, end: func() { tr.Close(); at.Close() }}
		defer c.close()
		<-time.After(sessionConnIdle / 2)
		c.open()
		c.welcome(hello("a"))
		<-time.After(3 * sessionConnIdle) // with a session it may be quiet
		if conn.Context().Err() != nil {
			t.Fatalf("closed with a session: %v", context.Cause(conn.Context()))
		}
		c.send(&session.Fin{})
		c.until(is[*session.Fin])
		<-time.After(sessionConnIdle + time.Second)
		synctest.Wait()
		if e, ok := errors.AsType[*quic.ApplicationError](context.Cause(conn.Context())); !ok || e.ErrorCode != 0 {
			t.Errorf("%v", context.Cause(conn.Context()))
		}
	})
}
