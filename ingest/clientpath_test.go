package ingest

import (
	"crypto/tls"
	"errors"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/headgate-io/headgate/sdk/client"
)

// The way in one direction loses a third, or for a while all: no event is lost or stored twice, in whichever direction it is.
func TestF48LossInOneDirection(t *testing.T) {
	for name, fromGateway := range map[string]bool{"to the gateway": false, "from the gateway": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := serveSessions(t, &fakeStream{})
				defer g.end()
				at, n := netip.MustParseAddrPort(g.at.LocalAddr().String()), 0
				set := func(whole bool) {
					g.Drop(func(from, _ netip.AddrPort, _ int) bool { // under the network's lock, which guards n
						if (from == at) != fromGateway {
							return false
						}
						n++
						return whole || n%3 == 0
					})
				}
				set(false)
				p := g.client()
				p.width = 500
				batches := p.send(0, 100)
				p.accepted(batches)
				set(true)
				batches = p.send(200, 100)
				<-time.After(time.Minute) // the connection is given up
				set(false)
				for _, b := range batches { // of some it is known only that they have their outcome
					if r, err := b.Wait(t.Context()); err != nil || r.Accepted+r.Settled != int(b.Count) {
						t.Errorf("%d: %+v %v", b.First, r, err)
					}
				}
				g.Drop(nil)
				if err := p.Close(t.Context()); err != nil {
					t.Error(err)
				}
				numbered(t, g.data(), 0, 400)
				if len(p.notices) == 0 {
					t.Error("no connection was lost")
				}
			})
		})
	}
}

// The way stops in one direction and stays so: where there is another way, that is noticed in some seconds, also when the gateway is
// still heard, which sends again what nobody says has come.
func TestF60AWallInOneDirection(t *testing.T) {
	for name, walls := range map[string]func(from, gateway netip.AddrPort) bool{
		"to the gateway":   func(from, gateway netip.AddrPort) bool { return from != gateway },
		"from the gateway": func(from, gateway netip.AddrPort) bool { return from == gateway },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := serveSessions(t, &fakeStream{})
				defer g.end()
				at := netip.MustParseAddrPort(g.at.LocalAddr().String())
				noticed := make(chan time.Time, 100)
				p := g.client(func(c *sdk.Config) {
					c.HTTP = "http://127.0.0.1:1"
					c.Notice = func(code, _ string) {
						if code == "udp" {
							noticed <- time.Now()
						}
					}
				})
				p.accepted(p.send(0, 100))
				all := p.send(200, 10)
				g.Drop(func(from, _ netip.AddrPort, _ int) bool { return walls(from, at) })
				for n, begun := 220, time.Now(); ; n += 2 {
					all = append(all, p.send(n, 1)...)
					select {
					case <-time.After(20 * time.Millisecond):
						continue
					case is := <-noticed:
						if took := is.Sub(begun); took > 3*time.Second {
							t.Errorf("it took %v", took)
						}
					}
					break
				}
				g.Drop(nil)
				for _, b := range all { // of some it is known only that they have their outcome
					if r, err := b.Wait(t.Context()); err != nil || r.Accepted+r.Settled != int(b.Count) {
						t.Errorf("%d: %+v %v", b.First, r, err)
					}
				}
				if err := p.Close(t.Context()); err != nil {
					t.Error(err)
				}
				numbered(t, g.data(), 0, 200+2*(len(all)))
			})
		})
	}
}

// A gateway that does not stand any more for what it has acknowledged is found out when the session goes on, and that is said once.
func TestTheClientSaysWhatTheGatewayHasForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := serveSessions(t, &fakeStream{})
		defer g.end()
		p := g.client()
		p.accepted(p.send(0, 10))
		if n := g.sessions.forgetStream("s"); n != 1 {
			t.Errorf("%d sessions are forgotten", n)
		}
		p.accepted(p.send(20, 10))
		g.Block(true)
		all := p.send(40, 1)
		<-time.After(time.Minute) // the connection is given up
		g.Block(false)
		p.accepted(all)
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
		said := 0
		for _, n := range p.notices {
			if strings.HasPrefix(n, "events_lost: ") {
				said++
			}
		}
		if said != 1 || !strings.Contains(strings.Join(p.notices, "\n"), "events_lost: the gateway has acknowledged the events up to 20 and stands for those up to 0") {
			t.Errorf("%q", p.notices)
		}
		numbered(t, g.data(), 0, 42)
	})
}

// Silence of a second is no wall: where there is another way, the session does not leave the connection for it.
func TestF60SilenceIsNoWall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := serveSessions(t, &fakeStream{})
		defer g.end()
		p := g.client(func(c *sdk.Config) { c.HTTP = "http://127.0.0.1:1" })
		p.accepted(p.send(0, 10))
		for round := range 3 {
			g.Block(true)
			all := p.send(20*round+20, 10)
			<-time.After(time.Second)
			g.Block(false)
			p.accepted(all)
			<-time.After(3 * time.Second)
		}
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
		numbered(t, g.data(), 0, 80)
		if len(p.notices) > 0 {
			t.Errorf("%q", p.notices)
		}
	})
}

// A second handshake that is refused has got through, so that what is silent is no wall.
func TestF60ARefusalIsNoWall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := serveSessions(t, &fakeStream{})
		defer g.end()
		var shaken atomic.Int32
		p := g.client(func(c *sdk.Config) {
			c.HTTP = "http://127.0.0.1:1"
			c.TLS.VerifyConnection = func(tls.ConnectionState) error {
				if shaken.Add(1) > 1 {
					return errors.New("refused")
				}
				return nil
			}
		})
		p.accepted(p.send(0, 10))
		p.mu.Lock()
		first := netip.MustParseAddrPort(p.now.LocalAddr().String())
		p.mu.Unlock()
		g.Drop(func(from, to netip.AddrPort, _ int) bool { return from == first || to == first })
		all := p.send(20, 10)
		<-time.After(1500 * time.Millisecond)
		g.Drop(nil)
		p.accepted(all)
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
		numbered(t, g.data(), 0, 40)
		if n := shaken.Load(); len(p.notices) > 0 || n < 2 {
			t.Errorf("%d handshakes, %q", n, p.notices)
		}
	})
}
