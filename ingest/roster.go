package ingest

import (
	"errors"
	"net"
	"net/netip"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/event"
)

// roster knows every open connection, of all listeners together, and how many there may be.
type roster struct {
	most       int // connections
	sockets    int // of them over TCP, each of which is an open file
	perAddress int // connections of one client address, 0: no limit

	leaving chan struct{} // one token for each connection that was turned away and is not closed yet
	left    sync.WaitGroup

	mu        sync.Mutex // guards what follows
	gone      *sync.Cond // a connection was closed
	conns     map[*conn]struct{}
	others    int // connections that are not ours to close: those over QUIC
	addresses map[netip.Addr]int
}

func newRoster(cfg *Config) *roster {
	r := &roster{most: cfg.MaxConnections, sockets: cfg.MaxSockets, perAddress: cfg.MaxConnectionsPerAddress, leaving: make(chan struct{}, mostLeaving),
		conns: map[*conn]struct{}{}, addresses: map[netip.Addr]int{}}
	r.gone = sync.NewCond(&r.mu)
	return r
}

// enter takes c in unless there are too many, or its listener is closed: who comes then must not be missed by kill.
func (r *roster) enter(c *conn, closed func() bool) *event.Problem {
	r.mu.Lock()
	defer r.mu.Unlock()
	if closed() {
		return event.Problemf(event.Draining, "the gateway stops")
	}
	if no := r.room(c.addr); no != nil {
		return no
	}
	if r.sockets > 0 && len(r.conns) >= r.sockets {
		return event.Problemf(event.Overloaded, "too many connections: the gateway takes %d over TCP, which is what its limit of open files leaves (ulimit -n)", r.sockets)
	}
	r.conns[c] = struct{}{}
	r.addresses[c.addr]++
	return nil
}

// room says why there may be no further connection from addr; r.mu is held.
func (r *roster) room(addr netip.Addr) *event.Problem {
	switch {
	case len(r.conns)+r.others >= r.most:
		return event.Problemf(event.Overloaded, "too many connections: the gateway takes %d (http.max_connections)", r.most)
	case r.perAddress > 0 && r.addresses[addr] >= r.perAddress:
		return event.Problemf(event.CallerRate, "too many connections from your address: the gateway takes %d of one (http.max_connections_per_address)", r.perAddress)
	}
	return nil
}

func (r *roster) forget(c *conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, c)
	r.uncount(c.addr)
	r.gone.Broadcast()
}

// uncount takes a connection off those of its address; r.mu is held.
func (r *roster) uncount(addr netip.Addr) {
	if r.addresses[addr]--; r.addresses[addr] <= 0 {
		delete(r.addresses, addr)
	}
}

// Enter counts a connection over QUIC, which has no socket of its own, or says why there may be none.
func (r *roster) Enter(addr netip.Addr) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if no := r.room(addr); no != nil {
		return no
	}
	r.others++
	r.addresses[addr]++
	return nil
}

// Leave takes back an Enter.
func (r *roster) Leave(addr netip.Addr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.others--
	r.uncount(addr)
}

// count is how many connections are open.
func (r *roster) count() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return float64(len(r.conns) + r.others)
}

// watch exports how many connections are open, and how many may be.
func (r *roster) watch(reg prometheus.Registerer) error {
	if reg == nil {
		return nil
	}
	return errors.Join(
		reg.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "headgate_http_connections",
			Help: "Open connections of clients that send events: TCP, with TLS and without, and QUIC."}, r.count)),
		reg.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "headgate_http_connections_limit",
			Help: "How many there may be: http.max_connections. Over TCP the limit of open files may allow fewer."}, func() float64 { return float64(r.most) })))
}

// mostLeaving is how many connections that were turned away linger: each costs a file while there may be few.
const mostLeaving = 64

// leave closes a connection that was turned away so that its client sees why, unless too many are at that already.
func (r *roster) leave(raw net.Conn) {
	select {
	case r.leaving <- struct{}{}:
	default:
		raw.Close()
		return
	}
	r.left.Go(func() {
		linger(raw)
		raw.Close()
		<-r.leaving
	})
}

// those returns the connections for which which is true.
func (r *roster) those(which func(*conn) bool) (all []*conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.conns {
		if which(c) {
			all = append(all, c)
		}
	}
	return all
}

// kill closes the sockets of all connections for which which is true, and returns when nobody uses them any more.
func (r *roster) kill(which func(*conn) bool) {
	var closing sync.WaitGroup
	for _, c := range r.those(which) { // one that is answered on is closed for its next use at once, and for good behind the answer
		closing.Go(c.kill)
	}
	closing.Wait()
}

// drained returns when no connection is open.
func (r *roster) drained() {
	r.left.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.conns) > 0 {
		r.gone.Wait()
	}
}
