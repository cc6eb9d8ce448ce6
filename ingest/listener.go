package ingest

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/problem"
)

// listener accepts connections as long as it is open: being out of file descriptors or memory for a while only
// makes it wait, where fasthttp on a bare listener would stop serving for good. It knows every open connection.
type listener struct {
	net.Listener
	log        *slog.Logger
	most       int // connections
	perAddress int // connections of one client address, 0: no limit
	shut       chan struct{}
	once       sync.Once

	mu        sync.Mutex // guards what follows
	gone      *sync.Cond // a connection was closed
	conns     map[*conn]struct{}
	addresses map[netip.Addr]int
}

func newListener(ln net.Listener, cfg *Config, log *slog.Logger) *listener {
	l := &listener{Listener: ln, log: log, most: cfg.MaxConnections, perAddress: cfg.MaxConnectionsPerAddress,
		shut: make(chan struct{}), conns: map[*conn]struct{}{}, addresses: map[netip.Addr]int{}}
	l.gone = sync.NewCond(&l.mu)
	return l
}

const (
	firstPause   = 5 * time.Millisecond
	longestPause = time.Second
)

// Accept returns the next connection within the limits.
func (l *listener) Accept() (net.Conn, error) {
	for pause := firstPause; ; {
		raw, err := l.Listener.Accept()
		switch {
		case err == nil:
			if c := l.admit(raw); c != nil {
				return c, nil
			}
			pause = firstPause
			continue
		case !passing(err):
			return nil, err
		}
		if pause == firstPause {
			l.log.Warn("cannot accept connections, trying again until it works", "error", err)
		}
		if !l.wait(pause) {
			return nil, net.ErrClosed
		}
		pause = min(2*pause, longestPause)
	}
}

// wait lets d pass and reports false when the listener is closed meanwhile.
func (l *listener) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.shut:
		return false
	}
}

// passing reports whether accepting can work again after err without our doing anything.
func passing(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.EINTR} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Close stops accepting; connections stay open. It may be called twice.
func (l *listener) Close() (err error) {
	l.once.Do(func() {
		close(l.shut)
		err = l.Listener.Close()
	})
	return err
}

func (l *listener) closed() bool {
	select {
	case <-l.shut:
		return true
	default:
		return false
	}
}

// admit takes a connection in, or tells it that there are too many and returns nil.
// A connection that comes while the listener closes is dropped.
func (l *listener) admit(raw net.Conn) *conn {
	c := &conn{Conn: raw, owner: l, since: time.Now()}
	c.silent.Store(true)
	if tcp, ok := raw.RemoteAddr().(*net.TCPAddr); ok {
		c.addr = tcp.AddrPort().Addr().Unmap()
		c.client = c.addr.AppendTo(nil)
	}
	c.armWrite()
	l.mu.Lock()
	if l.closed() { // meanwhile: who comes now must not be missed by kill
		l.mu.Unlock()
		raw.Close()
		return nil
	}
	full, busy := len(l.conns) >= l.most, l.perAddress > 0 && l.addresses[c.addr] >= l.perAddress
	if !full && !busy {
		l.conns[c] = struct{}{}
		l.addresses[c.addr]++
	}
	l.mu.Unlock()
	switch {
	case full:
		turnAway(raw, event.Problemf(event.Overloaded, "too many connections"))
		return nil
	case busy:
		turnAway(raw, event.Problemf(event.CallerRate, "too many connections from your address"))
		return nil
	}
	return c
}

// turnAway answers and closes a connection before it has sent anything. So little fits into the empty send buffer of
// a new socket: it does not block.
func turnAway(raw net.Conn, p *event.Problem) {
	status, _, doc := problem.Render(p, newID(time.Now()))
	fmt.Fprintf(raw, "HTTP/1.1 %d Refused\r\nContent-Type: %s\r\nRetry-After: %d\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
		status, problem.MediaType, 1+rand.IntN(5), len(doc), doc)
	raw.Close()
}

func (l *listener) forget(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
	if l.addresses[c.addr]--; l.addresses[c.addr] <= 0 {
		delete(l.addresses, c.addr)
	}
	l.gone.Broadcast()
}

// kill closes the sockets of all connections for which which is true.
func (l *listener) kill(which func(*conn) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		if which(c) {
			c.kill()
		}
	}
}

// drained returns when no connection is open.
func (l *listener) drained() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.conns) > 0 {
		l.gone.Wait()
	}
}
