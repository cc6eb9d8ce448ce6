package main

import (
	"bufio"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/headgate-io/headgate/sdk/session"
)

// holed is a socket of a client that, once told, loses what it sends up to the datagram with the hole, sends a few, and is never heard
// again. It hears nothing itself from then on.
type holed struct {
	net.PacketConn
	mu     sync.Mutex
	sent   int // since the hole; 0: it is to come, -1: nothing is lost yet
	lost   chan struct{}
	filled chan struct{}
}

// hole is how many bytes are missing, filling how many datagrams come behind: what a client may send that hears no acknowledgement (RFC 9002 section 7.2) and less.
const hole, filling = 600, 25

func (h *holed) WriteTo(b []byte, to net.Addr) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sent > 0 {
		h.sent++
	}
	switch {
	case h.sent == 0:
		if len(b) >= hole {
			h.sent = 1
			close(h.lost)
		}
		return len(b), nil
	case h.sent == 1+filling:
		defer close(h.filled)
	case h.sent > 1+filling:
		return len(b), nil
	}
	return h.PacketConn.WriteTo(b, to)
}

func (h *holed) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, from, err := h.PacketConn.ReadFrom(b)
		h.mu.Lock()
		deaf := h.sent >= 0
		h.mu.Unlock()
		if err != nil || !deaf {
			return n, from, err
		}
	}
}

// leave sends with a hole and is not heard again.
func (h *holed) leave(t *testing.T, c *quic.Conn) {
	t.Helper()
	first, err := c.OpenStream() // an exchange, so that the handshake is over on both sides
	if err == nil {
		_, err = first.Write((&session.Fin{}).Append(nil))
	}
	if err == nil {
		_, err = io.ReadAll(bufio.NewReader(first))
	}
	str, failed := c.OpenStream()
	if err != nil || failed != nil {
		t.Errorf("%v %v", err, failed)
		return
	}
	h.mu.Lock()
	h.sent = 0
	h.mu.Unlock()
	str.Write(make([]byte, hole))
	<-h.lost
	str.SetWriteDeadline(time.Now().Add(time.Minute))
	go str.Write(make([]byte, 128<<10))
	<-h.filled
}

// Connections that send what lies behind a gap which is never closed: it has to be held. It takes no more than their windows, and is
// gone when they have been silent for long enough.
func TestF54WindowsWithAHole(t *testing.T) {
	n, idle := 10, 3*time.Second
	if _, long := stalled(n); long {
		n, idle = 1000, 30*time.Second // of the fault
	}
	p := startGateway(t, t.TempDir(), append(onQUIC, "--set", "quic.idle_timeout="+idle.String())...)
	p.honest(0)
	base := p.restMemory()
	for range n {
		h := &holed{sent: -1, lost: make(chan struct{}), filled: make(chan struct{})}
		tr := strangers(t, 0, func(c net.PacketConn) net.PacketConn { h.PacketConn = c; return h })
		c, err := tr.Dial(t.Context(), p.quicAt(), trusting(session.Protocol), patience)
		for err != nil && t.Context().Err() == nil {
			c, err = tr.Dial(t.Context(), p.quicAt(), trusting(session.Protocol), patience)
		}
		h.leave(t, c)
	}
	peak := p.peakMemory()
	t.Logf("%d connections with a hole: %d KiB each, memory %d KiB, then at most %d KiB", n, (peak-base)>>10/int64(n), base>>10, peak>>10)
	if most := base + int64(n)*(256<<10) + 32<<20; peak > most {
		t.Errorf("%d KiB, at most %d KiB are to be expected", peak>>10, most>>10)
	}
	p.until("the connections are forgotten", func() bool { return p.connections() == 0 })
	p.honest(1)
}
