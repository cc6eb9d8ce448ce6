package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// faults are shares of datagrams, of 1, that something befalls in each direction.
type faults struct{ lost, late, twice, corrupt float64 }

// udpProxy is a bad way to a gateway over UDP: datagrams get lost, late, repeated and damaged, and the gateway sees a client come
// from another address and port after each change.
type udpProxy struct {
	t      *testing.T
	front  *net.UDPConn
	to     *net.UDPAddr
	faults faults
	after  int // datagrams of a client that its address changes after; 0: when change is called

	mu     sync.Mutex // guards the rest
	random *rand.Rand
	flows  map[string]*udpFlow
	host   byte
	open   sync.WaitGroup

	most atomic.Int64 // bytes of a datagram that passes; 0: any

	changes, followed, lost, damaged, large atomic.Int64
}

// udpFlow is what a client sends and gets.
type udpFlow struct {
	client *net.UDPAddr
	back   *net.UDPConn // what the gateway sees
	sent   int
}

// openProxy opens one to a gateway's address.
func openProxy(t *testing.T, gateway string, f faults, after int) *udpProxy {
	t.Helper()
	to, err := net.ResolveUDPAddr("udp", gateway)
	if err != nil {
		t.Fatal(err)
	}
	front, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	p := &udpProxy{t: t, front: front, to: to, faults: f, after: after, random: rand.New(rand.NewPCG(1, 2)), flows: map[string]*udpFlow{}, host: 1}
	front.SetReadBuffer(4 << 20)
	p.open.Go(p.forth)
	t.Cleanup(p.close)
	return p
}

func (p *udpProxy) at() string { return p.front.LocalAddr().String() }

func (p *udpProxy) close() {
	p.front.Close()
	p.mu.Lock()
	for _, f := range p.flows {
		f.back.Close()
	}
	p.mu.Unlock()
	p.open.Wait()
}

// forth carries datagrams to the gateway.
func (p *udpProxy) forth() {
	b := make([]byte, 64<<10)
	for {
		n, from, err := p.front.ReadFromUDP(b)
		if err != nil {
			return
		}
		p.mu.Lock()
		f := p.flows[from.String()]
		if f == nil {
			f = &udpFlow{client: from}
			p.flows[from.String()] = f
			p.rebind(f)
		} else if f.sent++; p.after > 0 && f.sent%p.after == 0 {
			p.rebind(f)
			p.changes.Add(1)
		}
		back := f.back
		p.mu.Unlock()
		p.carry(b[:n], func(d []byte) { back.WriteToUDP(d, p.to) })
	}
}

// change gives all clients new addresses.
func (p *udpProxy) change() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.flows {
		p.rebind(f)
		p.changes.Add(1)
	}
}

// rebind lets a client come from another port of another address of this machine, if it has more, and forgets the one before; p.mu
// is held.
func (p *udpProxy) rebind(f *udpFlow) {
	p.host = p.host%100 + 2
	back, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, p.host)})
	if err != nil {
		back, err = net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	}
	if err != nil {
		p.t.Errorf("another address: %v", err)
		return
	}
	if f.back != nil {
		f.back.Close()
	}
	f.back = back
	p.open.Go(func() { p.forthBack(f.client, back) })
}

// forthBack carries datagrams of the gateway to a client.
func (p *udpProxy) forthBack(client *net.UDPAddr, back *net.UDPConn) {
	b := make([]byte, 64<<10)
	for first := true; ; first = false {
		n, _, err := back.ReadFromUDP(b)
		if err != nil {
			return
		}
		if first {
			p.followed.Add(1)
		}
		p.carry(b[:n], func(d []byte) { p.front.WriteToUDP(d, client) })
	}
}

// smallest is what each path takes that QUIC begins on here, and may be all that it takes.
const smallest = 1280

// carry lets happen to a datagram what befalls it.
func (p *udpProxy) carry(b []byte, send func([]byte)) {
	if len(b) > smallest {
		p.large.Add(1)
		if most := p.most.Load(); most > 0 && int64(len(b)) > most {
			return
		}
	}
	p.mu.Lock()
	lost, twice, late, corrupt := p.random.Float64() < p.faults.lost, p.random.Float64() < p.faults.twice, p.random.Float64() < p.faults.late, p.random.Float64() < p.faults.corrupt
	bit, delay := p.random.IntN(8*len(b)+1), time.Duration(p.random.IntN(10)+1)*time.Millisecond
	p.mu.Unlock()
	if lost {
		p.lost.Add(1)
		return
	}
	d := append([]byte(nil), b...)
	if corrupt && bit < 8*len(d) {
		p.damaged.Add(1)
		d[bit/8] ^= 1 << (bit % 8)
	}
	if twice {
		send(d)
	}
	if late {
		time.AfterFunc(delay, func() { send(d) }) // an error: the socket is closed
		return
	}
	send(d)
}

// String says what has happened.
func (p *udpProxy) String() string {
	return fmt.Sprintf("%d datagrams lost, %d damaged, %d changes of addresses, %d addresses answered", p.lost.Load(), p.damaged.Load(), p.changes.Load(), p.followed.Load())
}
