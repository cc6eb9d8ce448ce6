package ingest

import (
	"context"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// h3Conn is one connection that speaks HTTP/3.
type h3Conn struct {
	*quic.Conn
	active atomic.Int64 // requests whose header was read and whose answer is not written

	// quiet runs from the beginning, anew from the end of the last request, and does nothing while one is active. http3 has a
	// deadline for connections without streams alone: one on which a header does not end would be open until its age.
	quiet *time.Timer
	old   *time.Timer // runs until the connection is old; nil: it does not get old

	tunnels atomic.Int64 // sessions over WebTransport

	peer atomic.Pointer[peer] // who sent the last request
}

// peer is the address of a client. A connection may move to another one (RFC 9000 section 9).
type peer struct {
	at     string // as http3 says it
	addr   netip.Addr
	client []byte // the same, as text
}

// client takes an address apart, mostly that of the request before.
func (c *h3Conn) client(at string) ([]byte, netip.Addr) {
	p := c.peer.Load()
	if p == nil || p.at != at {
		p = &peer{at: at}
		if from, err := netip.ParseAddrPort(at); err == nil {
			p.addr = from.Addr().Unmap()
			p.client = p.addr.AppendTo(nil)
		}
		c.peer.Store(p)
	}
	return p.client, p.addr
}

type h3ConnKey struct{}

var discard = slog.New(slog.DiscardHandler) // clients that go away are no error of ours

// attach knows a connection until it is closed. At its age it is closed, unless a request is running: also when streams
// are open on which no header comes.
func (h *h3) attach(ctx context.Context, conn *quic.Conn) context.Context {
	c := &h3Conn{Conn: conn}
	h.sessions.quiet.join(c)
	h.mu.Lock()
	h.conns[c] = struct{}{}
	h.mu.Unlock()
	c.quiet = time.AfterFunc(h.server.IdleTimeout, func() { c.leave() })
	if h.age > 0 {
		c.expire(h.age)
	}
	context.AfterFunc(conn.Context(), func() {
		h.mu.Lock()
		delete(h.conns, c)
		h.mu.Unlock()
		h.sessions.quiet.leave(c)
		c.quiet.Stop()
		if c.old != nil {
			c.old.Stop()
		}
	})
	return context.WithValue(ctx, h3ConnKey{}, c)
}

// begin counts a request whose header is there; end, that it is answered.
func (c *h3Conn) begin() { c.active.Add(1) }

func (c *h3Conn) end(idle time.Duration) {
	if c.active.Add(-1) == 0 {
		c.quiet.Reset(idle)
	}
}

// settled is how long a connection without requests is left open for what may still be on its way.
const settled = 500 * time.Millisecond

// expire has the connection closed when it is old enough and idle.
func (c *h3Conn) expire(age time.Duration) {
	var again func()
	again = func() {
		if c.Context().Err() == nil && !c.leave() {
			time.AfterFunc(settled, again)
		}
	}
	c.old = time.AfterFunc(age, again)
}

// leave closes the connection unless a request is running.
func (c *h3Conn) leave() bool {
	if c.active.Load() > 0 {
		return false
	}
	c.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "")
	return true
}

// shutdown says GOAWAY on every connection, refuses further requests so that they can be sent elsewhere
// (H3_REQUEST_REJECTED), and closes each connection when its last request is answered. It returns when all are closed, or
// when ctx ends, which drops them.
func (h *h3) shutdown(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(settled)
		defer tick.Stop()
		for n := h.count(); n > 0; {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			n = h.leave()
		}
	}()
	err := h.server.Shutdown(ctx)
	<-done
	return err
}

func (h *h3) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.conns)
}

// leave closes what is idle and returns how many connections are left.
func (h *h3) leave() (left int) {
	h.mu.Lock()
	all := make([]*h3Conn, 0, len(h.conns))
	for c := range h.conns {
		all = append(all, c)
	}
	h.mu.Unlock()
	for _, c := range all {
		if !c.leave() {
			left++
		}
	}
	return left
}
