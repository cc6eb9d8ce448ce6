package quicdoor

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/quic-go/quic-go"
)

// doorConn is what the door counts of a connection, from its first packet to its end.
type doorConn struct {
	addr    netip.Addr // of its first packet
	window  atomic.Int64
	shaking sync.Once // ends its handshake
}

type doorConnKey struct{}

// doorConnOf returns what the context of a connection has.
func doorConnOf(conn *quic.Conn) *doorConn {
	v, _ := conn.Context().Value(doorConnKey{}).(*doorConn)
	if v == nil {
		panic("BUG: quicdoor: a connection that did not enter")
	}
	return v
}

var errTooManyHandshakes = errors.New("too many handshakes")

// enter counts a connection before its handshake, or refuses it.
func (d *Door) enter(ctx context.Context, from *quic.ClientInfo) (context.Context, error) {
	v := &doorConn{addr: Address(from.RemoteAddr)}
	if d.shaking.Add(1) > mostHandshakes {
		d.shaking.Add(-1)
		return nil, errTooManyHandshakes
	}
	if err := d.limits.Enter(v.addr); err != nil {
		d.shaking.Add(-1)
		return nil, err
	}
	d.here.move(1)
	context.AfterFunc(ctx, func() { d.leave(v) }) // closed, or the handshake failed
	return context.WithValue(ctx, doorConnKey{}, v), nil
}

func (d *Door) leave(v *doorConn) {
	v.shaken(d)
	d.windows.Add(-v.window.Swap(0))
	d.limits.Leave(v.addr)
	d.here.move(-1)
}

// shaken counts the handshake as over.
func (v *doorConn) shaken(d *Door) { v.shaking.Do(func() { d.shaking.Add(-1) }) }

// suspicious reports whether a client must first prove its address: when many have begun a handshake and not ended it.
func (d *Door) suspicious(net.Addr) bool { return d.shaking.Load() >= unproven }

// widen lets the window of a connection grow while there is room for all. It is called under locks of the connection.
func (d *Door) widen(conn *quic.Conn, more uint64) bool {
	n := int64(min(more, mostConn))
	if d.windows.Add(n) > d.cfg.Windows {
		d.windows.Add(-n)
		return false
	}
	v := doorConnOf(conn)
	v.window.Add(n)
	if conn.Context().Err() != nil { // it has left already
		d.windows.Add(-v.window.Swap(0))
	}
	return true
}

// Address is that of a UDP packet, invalid when there is none.
func Address(a net.Addr) netip.Addr {
	if udp, ok := a.(*net.UDPAddr); ok {
		return udp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
