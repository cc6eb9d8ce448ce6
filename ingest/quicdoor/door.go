// Package quicdoor opens the UDP socket on which QUIC is spoken, with its buffers, keys and limits, and hands each
// connection to who speaks the protocol that was agreed on. It knows nothing of events.
package quicdoor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/headgate-io/headgate/internal/udpgro"
)

// Config says where a door is and how; zero values mean the defaults.
type Config struct {
	Listen  string         // address; 127.0.0.1:8443
	Conn    net.PacketConn // what is listened on instead; nil: a socket at Listen
	TLS     *tls.Config    // certificates; its protocols are not looked at
	Keys    *Keys          // nil: new ones, so that clients of an earlier process learn late that it is gone
	Idle    time.Duration  // without any packet, then a connection is over; 30 s
	Windows int64          // bytes by which the receive windows of all connections together may grow; 128 MiB

	shares []share // nil: shares
}

// Keys outlive the process: with them a client of an earlier one learns at once that its connection is gone (stateless
// reset, RFC 9000 section 10.3), and addresses that were validated need not be again.
type Keys struct {
	Reset quic.StatelessResetKey
	Token quic.TokenGeneratorKey
}

// Limits says how many connections there may be. It is called concurrently.
type Limits interface {
	// Enter counts a connection from addr, or says why there may be none.
	Enter(addr netip.Addr) error
	// Leave is called once for each that entered.
	Leave(addr netip.Addr)
}

// Handler serves one connection and returns when it is over.
type Handler func(conn *quic.Conn)

// Door is a UDP socket that speaks QUIC.
type Door struct {
	cfg    Config
	limits Limits
	log    *slog.Logger

	conn      net.PacketConn
	transport *quic.Transport
	listener  *quic.Listener
	handlers  map[string]Handler
	buffers   Buffers

	configs []*quic.Config // of each of shares
	here    presence

	shaking atomic.Int64 // handshakes in progress
	windows atomic.Int64 // what windows have grown by
	serving sync.WaitGroup
	running atomic.Bool
	ran     chan struct{} // closed when Run returns
}

// DefaultListen is where QUIC is spoken when nothing else is said.
const DefaultListen = "127.0.0.1:8443"

// Bounds of what a client can hold without having sent a valid event. A connection's windows start at initialConn and
// may grow to mostConn, as long as all together have not grown by Config.Windows: 20,000 connections hold 5 GiB at most if
// each fills its first window and none is read, which those with small socket buffers cannot.
const (
	initialStream = 128 << 10
	mostStream    = 512 << 10
	initialConn   = 256 << 10
	mostConn      = 1 << 20

	mostStreams = 64 // at a time, of a connection; fewer in a crowd, see shares

	unproven       = 128   // handshakes in progress above which an address has to be proved (Retry)
	mostHandshakes = 4_096 // in progress, the rest is refused
)

// New returns a door to handlers, by protocol (ALPN). Nothing is open yet.
func New(cfg Config, handlers map[string]Handler, limits Limits, log *slog.Logger) *Door {
	if cfg.Listen == "" {
		cfg.Listen = DefaultListen
	}
	if cfg.Idle == 0 {
		cfg.Idle = 30 * time.Second
	}
	if cfg.Windows == 0 {
		cfg.Windows = 128 << 20
	}
	if cfg.shares == nil {
		cfg.shares = shares
	}
	return &Door{cfg: cfg, handlers: handlers, limits: limits, log: log, here: presence{collect: collect}, ran: make(chan struct{})}
}

// Listen opens the socket and returns its address. Connections wait until Run.
func (d *Door) Listen() (net.Addr, error) {
	d.conn = d.cfg.Conn
	if d.conn == nil {
		conn, err := net.ListenPacket("udp", d.cfg.Listen)
		if err != nil {
			return nil, fmt.Errorf("listen for QUIC: %w", err)
		}
		d.conn = conn
	}
	if udp, ok := d.conn.(*net.UDPConn); ok {
		d.buffers = enlarge(udp)
		for _, said := range d.buffers.complaints() {
			d.log.Warn(said)
		}
		d.conn = udpgro.Join(udp)
	}
	d.transport = &quic.Transport{Conn: d.conn, ConnectionIDLength: 8, VerifySourceAddress: d.suspicious, ConnContext: d.enter}
	if k := d.cfg.Keys; k != nil {
		d.transport.StatelessResetKey, d.transport.TokenGeneratorKey = &k.Reset, &k.Token
	}
	secure := d.cfg.TLS.Clone()
	secure.NextProtos = slices.Sorted(maps.Keys(d.handlers))
	var err error
	if d.listener, err = d.transport.Listen(secure, d.configure()); err != nil {
		return nil, errors.Join(fmt.Errorf("listen for QUIC: %w", err), d.conn.Close())
	}
	return d.conn.LocalAddr(), nil
}

// Buffers are those of the socket, once it is open.
func (d *Door) Buffers() Buffers { return d.buffers }

// common is what all connections have.
func (d *Door) common() *quic.Config {
	return &quic.Config{
		Allow0RTT:                      false, // a first flight can be recorded and sent again
		HandshakeIdleTimeout:           5 * time.Second,
		MaxIdleTimeout:                 d.cfg.Idle,
		InitialStreamReceiveWindow:     initialStream,
		MaxStreamReceiveWindow:         mostStream,
		InitialConnectionReceiveWindow: initialConn,
		MaxConnectionReceiveWindow:     mostConn,
		AllowConnectionWindowIncrease:  d.widen,
		// Of WebTransport's streams the header comes also when they are reset (draft-ietf-webtrans-http3).
		EnableStreamResetPartialDelivery: true,
		EnableDatagrams:                  true, // a handler must read them: else a connection holds 128, quic-go's bound
	}
}

// Run accepts connections until Close or until the socket fails, and returns when the last one is served.
func (d *Door) Run() error {
	d.running.Store(true)
	defer func() { d.serving.Wait(); close(d.ran) }()
	for {
		conn, err := d.listener.Accept(context.Background())
		if errors.Is(err, quic.ErrServerClosed) || errors.Is(err, quic.ErrTransportClosed) || errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("accept QUIC connections: %w", err)
		}
		doorConnOf(conn).shaken(d)
		serve := d.handlers[conn.ConnectionState().TLS.NegotiatedProtocol]
		if serve == nil { // crypto/tls agrees on nothing else
			conn.CloseWithError(0, "")
			continue
		}
		d.serving.Go(func() { serve(conn) })
	}
}

// Shut stops accepting; connections stay open.
func (d *Door) Shut() {
	if d.listener != nil {
		d.listener.Close()
	}
}

// Linger returns when every connection is over, or ctx.
func (d *Door) Linger(ctx context.Context) {
	if !d.running.Load() {
		return
	}
	select {
	case <-d.ran:
	case <-ctx.Done():
	}
}

// Close ends every connection at once and closes the socket. It may be called twice.
func (d *Door) Close() error {
	if d.transport == nil {
		return nil
	}
	return errors.Join(d.transport.Close(), ignoreClosed(d.conn.Close()))
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
