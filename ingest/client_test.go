package ingest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/lossy"
	sdk "github.com/headgate-io/headgate/sdk/client"
	"github.com/headgate-io/headgate/sdk/session"
)

// The tests in this file have the client of the SDK talk to the gateway's side over a simulated network.

// producing is a client with the socket that it uses now.
type producing struct {
	*sdk.Client
	t *testing.T

	width int // of an event

	mu      sync.Mutex
	now     *lossy.Endpoint
	notices []string
}

var hosts atomic.Int64

func (g *sessionGate) client(change ...func(*sdk.Config)) *producing {
	g.t.Helper()
	p := &producing{t: g.t}
	cfg := sdk.Config{Address: g.at.LocalAddr().String(), Stream: "s", Framing: session.JSON, TLS: &tls.Config{InsecureSkipVerify: true}, Session: "p"}
	cfg.Listen = func() (net.PacketConn, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.now = g.Endpoint(host(2))
		return p.now, nil
	}
	cfg.Notice = func(code, detail string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.notices = append(p.notices, code+": "+detail)
	}
	for _, c := range change {
		c(&cfg)
	}
	var err error
	if p.Client, err = sdk.New(cfg); err != nil {
		g.t.Fatal(err)
	}
	return p
}

// host is an address that nobody has.
func host(network int) string {
	n := hosts.Add(1)
	return fmt.Sprintf("10.%d.%d.%d:4000", network, n/250, n%250+1)
}

// send hands over n batches of events, numbered from first.
func (p *producing) send(first, n int) (all []*sdk.Batch) {
	p.t.Helper()
	for i := range n {
		b, err := p.Send(p.t.Context(), fmt.Appendf(nil, "%*d", p.width, first+2*i), fmt.Appendf(nil, "%*d", p.width, first+2*i+1))
		if err != nil {
			p.t.Fatal(err)
		}
		all = append(all, b)
	}
	return all
}

// accepted checks that every event of the batches is.
func (p *producing) accepted(all []*sdk.Batch) {
	p.t.Helper()
	for _, b := range all {
		if r, err := b.Wait(p.t.Context()); err != nil || r.Accepted != int(b.Count) {
			p.t.Errorf("%d: %+v %v", b.First, r, err)
		}
	}
}

// numbered checks that the numbers from first are stored, each once and in order.
func numbered(t *testing.T, got []string, first, n int) {
	t.Helper()
	for i := range n {
		if i >= len(got) || strings.TrimSpace(got[i]) != fmt.Sprint(first+i) {
			t.Fatalf("event %d of %d stored is not %d: %q", i, len(got), first+i, got[max(0, i-2):min(len(got), i+3)])
		}
	}
	if len(got) != n {
		t.Fatalf("%d stored, want %d", len(got), n)
	}
}

func TestF48LossReorderingRepetitionAndCorruption(t *testing.T) {
	for seed, f := range []lossy.Faults{{Lost: .01}, {Lost: .1, Twice: .1, Late: .3}, {Lost: .3, Late: .5}, {Lost: .05, Corrupt: .1, Twice: .2, Late: .2}} {
		t.Run(fmt.Sprintf("%+v", f), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := serveSessions(t, &fakeStream{})
				defer g.end()
				g.Network.Seed(uint64(seed))
				g.Set(f)
				p := g.client()
				p.width = 500 // so that there are packets to lose
				p.accepted(p.send(0, 300))
				g.Set(lossy.Faults{})
				if err := p.Close(t.Context()); err != nil {
					t.Error(err)
				}
				numbered(t, g.data(), 0, 600)
				if g.Lost() == 0 {
					t.Error("nothing was lost: the test tests nothing")
				}
			})
		})
	}
}

// A NAT gives the client another port every two seconds: the session goes on, on the same connection.
func TestF49J11RebindingInTheMiddleOfAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := serveSessions(t, &fakeStream{})
		defer g.end()
		p := g.client()
		var all []*sdk.Batch
		for round := range 5 {
			all = append(all, p.send(round*200, 100)...)
			<-time.After(2 * time.Second)
			p.mu.Lock()
			p.now.Rebind(host(3))
			p.mu.Unlock()
		}
		p.accepted(all)
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
		numbered(t, g.data(), 0, 1000)
		if len(p.notices) > 0 {
			t.Errorf("the connection was lost: %q", p.notices)
		}
	})
}

// A network that is gone for a while costs no event, and none is stored twice.
func TestConnectionsAreLostAndSessionsAreNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := serveSessions(t, &fakeStream{})
		defer g.end()
		p := g.client()
		all := p.send(0, 100)
		for round := range 3 {
			<-time.After(15 * time.Millisecond) // in the middle
			g.Block(true)
			all = append(all, p.send(200*(round+1), 100)...)
			<-time.After(time.Minute)
			g.Block(false)
		}
		p.accepted(all)
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
		numbered(t, g.data(), 0, 800)
		if len(p.notices) == 0 {
			t.Error("no connection was lost")
		}
	})
}

// A connection that is as old as it may get hands its session on to another one: in order, and nothing is said or stored twice.
func TestSessionsGoOnBehindTheAgeOfAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := serveSessions(t, &fakeStream{})
		defer g.end()
		g.sessions.age = 10 * time.Second
		p := g.client()
		var all []*sdk.Batch
		for round := range 9 {
			all = append(all, p.send(round*40, 20)...)
			<-time.After(5 * time.Second)
		}
		for _, b := range all {
			if r, err := b.Wait(t.Context()); err != nil || r.Accepted != int(b.Count) {
				t.Errorf("batch %d: %+v, %v", b.First, r, err)
			}
		}
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
		numbered(t, g.data(), 0, 360)
		if n := len(p.notices); n < 4 || n > 6 || slices.ContainsFunc(p.notices, func(s string) bool { return s != "connection: the session goes on on another connection" }) {
			t.Errorf("45 s over connections of 10 s: %q", p.notices)
		}
	})
}

// The gateway stops and another one begins with what it has kept.
func TestF58GatewayRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &memoryLog{}
		s := &fakeStream{}
		g := serveSessions(t, s)
		g.sessions.Keep(log, true, time.Now())
		p := g.client()
		first := p.send(0, 50)
		p.accepted(first)
		more := p.send(100, 50)
		<-time.After(5 * time.Millisecond)
		g.end()
		h := serveSessionsAt(t, s, g.Network)
		defer h.end()
		restore(h.sessions, log.records)
		p.accepted(more)
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
		numbered(t, s.data(), 0, 200)
	})
}

func TestE06ClientNamesRejectedEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := serveSessions(t, &fakeStream{})
		defer g.end()
		p := g.client()
		b, err := p.Send(t.Context(), []byte("1"), []byte("{"), []byte("2"))
		if err != nil {
			t.Fatal(err)
		}
		r, err := b.Wait(t.Context())
		if err != nil || r.Accepted != 2 || r.Rejected != 1 || r.Level != session.Durable || len(r.Rejects) != 1 || r.Rejects[0].Index != 1 || r.Rejects[0].Code != "malformed_json" {
			t.Errorf("%+v %v", r, err)
		}
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// What is in flight is bounded, and in order, while the gateway takes nothing.
func TestO06EventsInFlightAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var full atomic.Bool
		full.Store(true)
		s := &fakeStream{accept: func(context.Context, *event.Batch) error {
			if full.Load() {
				return event.Problemf(event.SpoolFull, "full")
			}
			return nil
		}}
		g := serveSessions(t, s)
		defer g.end()
		p := g.client(func(c *sdk.Config) { c.InFlight = 1000 })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		sent, failed := 0, error(nil)
		for ; failed == nil; sent++ {
			_, failed = p.Send(ctx, fmt.Append(nil, sent))
		}
		if sent--; !errors.Is(failed, context.DeadlineExceeded) || sent < 200 || sent > 600 {
			t.Errorf("%d were taken: %v", sent, failed)
		}
		full.Store(false)
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
		numbered(t, g.data(), 0, sent)
		if len(p.notices) == 0 || p.notices[0] != "spool_full: full" {
			t.Errorf("%q", p.notices)
		}
	})
}

func TestClientFailsForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := serveSessions(t, &fakeStream{})
		defer g.end()
		p := g.client(func(c *sdk.Config) { c.Stream = "other" })
		b, err := p.Send(t.Context(), []byte("1"))
		if err != nil {
			t.Fatal(err)
		}
		var left *sdk.UnsettledError
		if _, err := b.Wait(t.Context()); !errors.As(err, &left) {
			t.Errorf("%v", err)
		}
		if _, err := p.Send(t.Context(), []byte("2")); err == nil {
			t.Error("it goes on")
		}
		if err := p.Close(t.Context()); !errors.As(err, &left) || left.Events != 1 {
			t.Errorf("%v", err)
		}
	})
}

// Where UDP does not come through, events go over HTTP.
func TestF60UDPIsBlocked(t *testing.T) {
	s := &fakeStream{}
	g := serve(t, Config{}, s)
	n := lossy.New(1, time.Millisecond)
	n.Block(true)
	var mu sync.Mutex
	var notices []string
	c, err := sdk.New(sdk.Config{Address: "10.0.0.1:443", HTTP: "http://" + g.addr, Stream: "s", Framing: session.Lines,
		Listen: func() (net.PacketConn, error) { return n.Endpoint(host(4)), nil },
		Notice: func(code, _ string) { mu.Lock(); notices = append(notices, code); mu.Unlock() }})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if _, err := c.Send(t.Context(), fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	if c.Over() != "http" {
		t.Errorf("over %q", c.Over())
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
	numbered(t, s.data(), 0, 10)
	if !slices.Equal(notices, []string{"udp"}) {
		t.Errorf("%q", notices)
	}
}
