package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
)

// A throng is connections to a gateway that are all there at once. One that goes, because the gateway or this process had no time for
// its handshake, is opened again.
type throng struct {
	p      *process
	to     *net.UDPAddr
	secure *tls.Config
	do     func(*quic.Conn) []*quic.Stream
	free   chan *quic.Transport // from where one is to be opened, n at most
	ctx    context.Context
	leave  context.CancelFunc
	hands  sync.WaitGroup

	open, streams, again atomic.Int64

	mu    sync.Mutex                  // guards the rest
	why   map[string]int              // what the others ended of
	first map[*quic.Conn]*quic.Stream // of those that are open
}

// fromOne is how many connections an address has, below what the gateway lets it have.
const fromOne = 500

// throng opens n connections that speak a protocol, has do something with each, and returns when all are there.
func (p *process) throng(n int, protocol string, do func(*quic.Conn) []*quic.Stream) *throng {
	t := p.t
	t.Helper()
	c := &throng{p: p, to: p.quicAt(), secure: trusting(protocol), do: do, free: make(chan *quic.Transport, n), why: map[string]int{}, first: map[*quic.Conn]*quic.Stream{}}
	c.ctx, c.leave = context.WithCancel(t.Context())
	t.Cleanup(func() { c.leave(); c.hands.Wait() })
	var tr *quic.Transport
	for i := range n {
		if i%fromOne == 0 {
			tr = strangers(t, i/fromOne, func(c net.PacketConn) net.PacketConn { return c })
		}
		c.free <- tr
	}
	for range 32 {
		c.hands.Go(c.dial)
	}
	c.wait(n)
	return c
}

// strangers opens a socket of an address that no other number has.
func strangers(t *testing.T, number int, wrap func(net.PacketConn) net.PacketConn) *quic.Transport {
	t.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 2, byte(number), 1)})
	if err != nil {
		t.Skipf("this machine has not all addresses of 127.0.0.0/8: %v", err)
	}
	tr := &quic.Transport{Conn: wrap(conn)}
	t.Cleanup(func() { tr.Close(); conn.Close() })
	return tr
}

// failed counts a connection that is opened again.
func (c *throng) failed(err error) {
	if c.ctx.Err() != nil {
		return
	}
	c.again.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.why[err.Error()]++
}

// prod sends a little on each connection: one whose handshake the gateway has given up and this process took for done gets a
// stateless reset for it. To a packet that is as short as one of those there is none.
func (c *throng) prod() {
	c.mu.Lock()
	all := slices.Collect(maps.Values(c.first))
	c.mu.Unlock()
	for _, str := range all {
		str.Write(make([]byte, prodded)) // an error: it has gone
	}
}

// How much is sent and how often, when not all connections are there as the gateway sees it.
const prodded, mostProds = 30, 3

// troubles says of what connections ended, and how many.
func (c *throng) troubles() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprint(c.why)
}

// quicAt is where the gateway speaks QUIC.
func (p *process) quicAt() *net.UDPAddr {
	p.t.Helper()
	at, err := net.ResolveUDPAddr("udp", strings.TrimPrefix(p.quicURL(), "https://"))
	if err != nil {
		p.t.Fatal(err)
	}
	return at
}

// trusting is the settings of a client that takes any certificate.
func trusting(protocol string) *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, ServerName: "localhost", NextProtos: []string{protocol}}
}

// patience is the settings of its connection. A gateway that has heard nothing of a handshake for 5 s says no more of
// it. Nothing is sent to keep connections: of so many that would be all that a busy machine does.
var patience = &quic.Config{MaxIdleTimeout: time.Hour, HandshakeIdleTimeout: 4 * time.Second}

// dial opens one connection after the other.
func (c *throng) dial() {
	for {
		select {
		case <-c.ctx.Done():
			return
		case from := <-c.free:
			conn, err := from.Dial(c.ctx, c.to, c.secure, patience)
			if err != nil {
				c.failed(err)
				time.AfterFunc(100*time.Millisecond, func() { c.free <- from })
				continue
			}
			all := c.do(conn)
			streams := int64(len(all))
			c.streams.Add(streams)
			c.open.Add(1)
			if streams > 0 {
				c.mu.Lock()
				c.first[conn] = all[0]
				c.mu.Unlock()
			}
			context.AfterFunc(conn.Context(), func() {
				c.mu.Lock()
				delete(c.first, conn)
				c.mu.Unlock()
				c.open.Add(-1)
				c.streams.Add(-streams)
				c.failed(context.Cause(conn.Context()))
				c.free <- from
			})
		}
	}
}

var connections = regexp.MustCompile(`(?m)^headgate_http_connections (\d+)$`)

// connections is how many the gateway says that it has.
func (p *process) connections() int {
	p.t.Helper()
	m := connections.FindStringSubmatch(p.get("/metrics"))
	if m == nil {
		p.t.Fatal("no gauge of connections")
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

// wait returns when n are open, as both sides see it, unless for two minutes no more are.
func (c *throng) wait(n int) {
	t := c.p.t
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	most, began, since, prods := -1, time.Now(), time.Now(), 0
	for ; ; <-tick.C {
		here := int(c.open.Load())
		if here == n {
			if here = c.p.connections(); here >= n {
				return
			}
			if time.Since(since) > time.Duration(prods)*30*time.Second && prods < mostProds {
				prods++
				c.prod()
			}
		}
		if here > most {
			most, since = here, time.Now()
		}
		if time.Since(since) > 2*time.Minute {
			t.Fatalf("%d connections are there after %v, and no more in two minutes: %s", most, time.Since(began).Round(time.Second), c.troubles())
		}
	}
}
