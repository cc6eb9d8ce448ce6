// Package lossy is a network in memory that loses, repeats, reorders and corrupts datagrams, for tests under
// testing/synctest.
package lossy

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"
)

// Faults are the shares of datagrams, of 1, that something befalls.
type Faults struct {
	Lost, Twice, Late, Corrupt float64
}

// Network carries datagrams between its endpoints. What befalls them depends on the seed alone, as long as they are sent
// in the same order.
type Network struct {
	delay time.Duration

	mu        sync.Mutex // guards the rest
	random    *rand.Rand
	faults    Faults
	endpoints map[netip.AddrPort]*Endpoint
	blocked   bool
	drops     func(from, to netip.AddrPort, size int) bool
	lost      int
}

// New returns a network without faults in which a datagram takes delay.
func New(seed uint64, delay time.Duration) *Network {
	return &Network{delay: delay, random: rand.New(rand.NewPCG(seed, 0)), endpoints: map[netip.AddrPort]*Endpoint{}}
}

// Set puts faults in force.
func (n *Network) Set(f Faults) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults = f
}

// Seed makes faults others.
func (n *Network) Seed(seed uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.random = rand.New(rand.NewPCG(seed, 0))
}

// Block loses every datagram, or no longer does.
func (n *Network) Block(all bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.blocked = all
}

// Drop loses what drops says, too, such as one direction or what is large; nil: nothing more.
func (n *Network) Drop(drops func(from, to netip.AddrPort, size int) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.drops = drops
}

// Lost is how many datagrams were lost by faults.
func (n *Network) Lost() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lost
}

// waiting is how many datagrams wait to be read at most, the rest is lost as in a socket.
const waiting = 1 << 10

// Endpoint is a socket on the network.
type Endpoint struct {
	net    *Network
	queue  chan datagram
	closed chan struct{}
	once   sync.Once

	mu       sync.Mutex // guards the rest
	at       netip.AddrPort
	deadline time.Time
	moved    chan struct{} // closed when the deadline is set anew
}

type datagram struct {
	from netip.AddrPort
	data []byte
}

// Endpoint opens a socket at an address like 10.0.0.1:443.
func (n *Network) Endpoint(at string) *Endpoint {
	e := &Endpoint{net: n, queue: make(chan datagram, waiting), closed: make(chan struct{}), at: netip.MustParseAddrPort(at), moved: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.endpoints[e.at] = e
	return e
}

// Rebind gives the socket another address, as a NAT on the way does. What is on its way to the old one is lost.
func (e *Endpoint) Rebind(at string) {
	e.net.mu.Lock()
	defer e.net.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.net.endpoints, e.at)
	e.at = netip.MustParseAddrPort(at)
	e.net.endpoints[e.at] = e
}

// WriteTo implements net.PacketConn.
func (e *Endpoint) WriteTo(p []byte, to net.Addr) (int, error) {
	select {
	case <-e.closed:
		return 0, net.ErrClosed
	default:
	}
	d := datagram{e.address(), slices.Clone(p)}
	n, at := e.net, to.(*net.UDPAddr).AddrPort()
	target := netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
	n.mu.Lock()
	defer n.mu.Unlock()
	f := n.faults
	if n.blocked || n.random.Float64() < f.Lost || n.drops != nil && n.drops(d.from, target, len(p)) {
		n.lost++
		return len(p), nil
	}
	if n.random.Float64() < f.Corrupt {
		d.data[n.random.IntN(len(d.data))] ^= 1 << n.random.IntN(8)
	}
	times := 1
	if n.random.Float64() < f.Twice {
		times = 2
	}
	for range times {
		delay := n.delay
		if n.random.Float64() < f.Late {
			delay += time.Duration(n.random.Float64() * 3 * float64(n.delay))
		}
		time.AfterFunc(delay, func() { n.deliver(target, d) })
	}
	return len(p), nil
}

func (n *Network) deliver(to netip.AddrPort, d datagram) {
	n.mu.Lock()
	e := n.endpoints[to]
	n.mu.Unlock()
	if e == nil {
		return
	}
	select {
	case e.queue <- d:
	default:
	}
}

// ReadFrom implements net.PacketConn.
func (e *Endpoint) ReadFrom(p []byte) (int, net.Addr, error) {
	for {
		e.mu.Lock()
		deadline, moved := e.deadline, e.moved
		e.mu.Unlock()
		var over <-chan time.Time
		if !deadline.IsZero() {
			left := time.Until(deadline)
			if left <= 0 {
				return 0, nil, os.ErrDeadlineExceeded
			}
			over = time.After(left)
		}
		select {
		case d := <-e.queue:
			return copy(p, d.data), net.UDPAddrFromAddrPort(d.from), nil
		case <-e.closed:
			return 0, nil, net.ErrClosed
		case <-moved:
		case <-over:
			return 0, nil, os.ErrDeadlineExceeded
		}
	}
}

// Close implements net.PacketConn.
func (e *Endpoint) Close() error {
	e.once.Do(func() {
		close(e.closed)
		e.net.mu.Lock()
		defer e.net.mu.Unlock()
		if at := e.address(); e.net.endpoints[at] == e {
			delete(e.net.endpoints, at)
		}
	})
	return nil
}

func (e *Endpoint) address() netip.AddrPort {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.at
}

// LocalAddr implements net.PacketConn.
func (e *Endpoint) LocalAddr() net.Addr { return net.UDPAddrFromAddrPort(e.address()) }

// SetReadDeadline implements net.PacketConn.
func (e *Endpoint) SetReadDeadline(t time.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.deadline = t
	close(e.moved)
	e.moved = make(chan struct{})
	return nil
}

// SetWriteDeadline implements net.PacketConn; writing never waits.
func (e *Endpoint) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline implements net.PacketConn.
func (e *Endpoint) SetDeadline(t time.Time) error { return e.SetReadDeadline(t) }

// SetReadBuffer is asked for by who wants a large one.
func (e *Endpoint) SetReadBuffer(int) error { return nil }

// SetWriteBuffer is asked for by who wants a large one.
func (e *Endpoint) SetWriteBuffer(int) error { return nil }
