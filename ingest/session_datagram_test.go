package ingest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/sdk/session"
)

// dialFor is dial for a protocol, with datagrams.
func (g *sessionGate) dialFor(protocol string) *rawClient {
	g.t.Helper()
	g.next++
	at := g.Endpoint(fmt.Sprintf("10.0.1.%d:4000", g.next))
	tr := &quic.Transport{Conn: at}
	conn, err := tr.Dial(g.t.Context(), g.at.LocalAddr(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}}, &quic.Config{EnableDatagrams: true})
	if err != nil {
		g.t.Fatal(err)
	}
	return &rawClient{t: g.t, conn: conn, end: func() { tr.Close(); at.Close() }}
}

// fire sends lines in a datagram.
func (c *rawClient) fire(lines string) {
	c.t.Helper()
	if err := c.conn.SendDatagram(append(session.AppendDatagramHead(nil, int64(c.str.StreamID()), session.Lines), lines...)); err != nil {
		c.t.Errorf("send a datagram: %v", err)
	}
}

// datagrams is what has become of them so far.
func (g *sessionGate) datagrams() map[string]int {
	all := map[string]int{}
	for _, result := range []string{datagramTaken, datagramRefused, datagramDropped, datagramUnknown, datagramMalformed} {
		if n := testutil.ToFloat64(g.sessions.datagrams.WithLabelValues(result)); n > 0 {
			all[result] = int(n)
		}
	}
	return all
}

func (g *sessionGate) want(what string, want map[string]int) {
	g.t.Helper()
	<-time.After(time.Second)
	synctest.Wait()
	if got := g.datagrams(); !maps.Equal(got, want) {
		g.t.Errorf("%s: datagrams were %v, should be %v", what, got, want)
	}
}

func accepted(name string) *session.Hello {
	return &session.Hello{Version: session.Version, Stream: "s", Session: name, Level: session.Accepted, Fields: []session.Field{{Name: "Headgate-Key", Value: "k"}}}
}

// inDatagrams runs a test with a client that has a session at the level accepted, which has sent nothing on its stream.
func inDatagrams(t *testing.T, s *fakeStream, test func(g *sessionGate, c *rawClient)) {
	synctest.Test(t, func(t *testing.T) {
		g := serveSessions(t, s)
		defer g.end()
		c := g.dialFor(session.Protocol)
		defer c.close()
		c.open()
		test(g, c)
	})
}

func TestDatagramsCarryEvents(t *testing.T) {
	inDatagrams(t, &fakeStream{}, func(g *sessionGate, c *rawClient) {
		c.fire("0\n") // before HELLO: of no session
		g.want("before HELLO", map[string]int{"unknown": 1})
		c.welcome(accepted("a"))
		c.fire("1\n2\n")
		c.fire("{\n3\n") // one of them is refused, and nobody hears it
		g.want("taken", map[string]int{"unknown": 1, "taken": 2})
		for _, d := range [][]byte{nil, {0}, {0, 1}, {0x80}, {0, 0x80, 0x80}, {0, 9, 'x'}, {0, 2, 200, 'x'}, {7, 1, '1'}} {
			if err := c.conn.SendDatagram(d); err != nil {
				t.Error(err)
			}
		}
		g.want("malformed", map[string]int{"unknown": 2, "taken": 2, "malformed": 5, "refused": 2})
		got := g.take()
		var data []string
		for _, e := range got {
			if data = append(data, e.data); e.key != "k" || e.ack != event.Accepted {
				t.Errorf("%+v", e)
			}
		}
		if !slices.Equal(data, []string{"1", "2", "3"}) {
			t.Errorf("stored %q", data)
		}
		c.events(1, "4").send(&session.Fin{}) // the stream goes on beside
		c.until(is[*session.Fin])
		c.fire("5\n")
		g.want("behind the end", map[string]int{"unknown": 3, "taken": 2, "malformed": 5, "refused": 2})
	})
}

// Only who asks for no more than accepted may send them.
func TestDatagramsNeedTheLevelAccepted(t *testing.T) {
	inDatagrams(t, &fakeStream{}, func(g *sessionGate, c *rawClient) {
		c.welcome(hello("a"))
		c.fire("1\n")
		g.want("durable", map[string]int{"unknown": 1})
		if got := g.data(); len(got) != 0 {
			t.Errorf("stored %q", got)
		}
	})
}

// A flood of datagrams costs a bounded part of the memory, takes nothing from others, and all of it is counted.
func TestDatagramsFloodIsBounded(t *testing.T) {
	release := make(chan struct{})
	s := &fakeStream{}
	s.accept = func(_ context.Context, b *event.Batch) error {
		if string(b.Producer) == "flood" {
			<-release
		}
		return nil
	}
	inDatagrams(t, s, func(g *sessionGate, c *rawClient) {
		release = make(chan struct{})
		h := accepted("a")
		h.Source = "flood"
		c.welcome(h)
		big := `"` + strings.Repeat("x", 1000) + "\"\n"
		for range 1000 {
			c.fire(big)
		}
		<-time.After(10 * time.Second)
		synctest.Wait()
		if most := int64((mostDatagrams + 1) * (1100 + datagramCost)); g.budget.Held() > most+64<<10 {
			t.Errorf("%d bytes are held for one connection", g.budget.Held())
		}
		if got := g.datagrams(); got["dropped"] < 1000-2*mostDatagrams {
			t.Errorf("%v", got)
		}
		other := g.dial()
		defer other.close()
		other.welcome(hello("b"))
		other.events(1, "1").send(&session.Fin{})
		other.until(is[*session.Fin])
		close(release)
		<-time.After(10 * time.Second)
		synctest.Wait()
		got := g.datagrams()
		if sum := got["dropped"] + got["taken"]; sum < 900 || got["taken"] > mostDatagrams+2 || got["taken"] != len(g.data())-1 {
			t.Errorf("of 1000 datagrams %v", got)
		}
	})
}

// What a request would be refused for, a datagram is, and it can be seen.
func TestRefusedDatagramsAreCounted(t *testing.T) {
	s := &fakeStream{accept: func(context.Context, *event.Batch) error { return event.Problemf(event.SpoolFull, "the spool is full") }}
	inDatagrams(t, s, func(g *sessionGate, c *rawClient) {
		c.welcome(accepted("a"))
		c.fire("1\n")
		g.want("refused", map[string]int{"refused": 1})
	})
}

// Over HTTP/3 nobody has agreed on them.
func TestDatagramsOverHTTP3EndTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := serveSessions(t, &fakeStream{})
		defer g.end()
		c := g.dialFor(http3.NextProtoH3)
		defer c.close()
		if err := c.conn.SendDatagram([]byte{0, 1, '1'}); err != nil {
			t.Fatal(err)
		}
		<-c.conn.Context().Done()
		if e, ok := errors.AsType[*quic.ApplicationError](context.Cause(c.conn.Context())); !ok || e.ErrorCode != datagramError {
			t.Errorf("%v", context.Cause(c.conn.Context()))
		}
	})
}
