package ingest

import (
	"net/netip"
	"sync"

	"github.com/headgate-io/headgate/event"
)

// roster knows every open connection, of all listeners together, and how many there may be.
type roster struct {
	most       int // connections
	perAddress int // connections of one client address, 0: no limit

	mu        sync.Mutex // guards what follows
	gone      *sync.Cond // a connection was closed
	conns     map[*conn]struct{}
	addresses map[netip.Addr]int
}

func newRoster(cfg *Config) *roster {
	r := &roster{most: cfg.MaxConnections, perAddress: cfg.MaxConnectionsPerAddress, conns: map[*conn]struct{}{}, addresses: map[netip.Addr]int{}}
	r.gone = sync.NewCond(&r.mu)
	return r
}

// enter takes c in unless there are too many, or its listener is closed: who comes then must not be missed by kill.
func (r *roster) enter(c *conn, closed func() bool) *event.Problem {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case closed():
		return event.Problemf(event.Draining, "the gateway stops")
	case len(r.conns) >= r.most:
		return event.Problemf(event.Overloaded, "too many connections")
	case r.perAddress > 0 && r.addresses[c.addr] >= r.perAddress:
		return event.Problemf(event.CallerRate, "too many connections from your address")
	}
	r.conns[c] = struct{}{}
	r.addresses[c.addr]++
	return nil
}

func (r *roster) forget(c *conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, c)
	if r.addresses[c.addr]--; r.addresses[c.addr] <= 0 {
		delete(r.addresses, c.addr)
	}
	r.gone.Broadcast()
}

// kill closes the sockets of all connections for which which is true.
func (r *roster) kill(which func(*conn) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.conns {
		if which(c) {
			c.kill()
		}
	}
}

// drained returns when no connection is open.
func (r *roster) drained() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.conns) > 0 {
		r.gone.Wait()
	}
}
