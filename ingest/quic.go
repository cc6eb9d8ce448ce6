package ingest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/ingest/quicdoor"
	"github.com/headgate-io/headgate/sdk/session"
)

// QUICConfig is the listener on UDP; zero values mean the defaults.
type QUICConfig struct {
	Listen   string         // address, 127.0.0.1:8443; port 0 takes a free one
	Conn     net.PacketConn // what is listened on instead; nil: a socket at Listen
	Optional bool           // when it cannot be listened on, that is logged and the gateway goes on without
	TLS      *tls.Config    // its certificates
	Keys     *quicdoor.Keys // nil: new ones
	Idle     time.Duration  // without any packet, then a connection is over; 30 s
}

// protocolH3 is HTTP/3's name in TLS (RFC 9114 section 3.1).
const protocolH3 = "h3"

// quicSide is what is spoken over QUIC.
type quicSide struct {
	cfg      QUICConfig
	edge     *edge
	log      *slog.Logger
	door     *quicdoor.Door
	h3       *h3
	sessions *sessions
	open     bool
}

func newQUICSide(requests context.Context, cfg *Config, e *edge, limits quicdoor.Limits) *quicSide {
	q := &quicSide{cfg: *cfg.QUIC, edge: e, log: e.log, sessions: newSessions(requests, e.core, cfg.ReadTimeout)}
	q.sessions.age = cfg.MaxConnectionAge
	q.h3 = newH3(requests, e, cfg, q.sessions)
	q.door = quicdoor.New(quicdoor.Config{Listen: q.cfg.Listen, Conn: q.cfg.Conn, TLS: q.cfg.TLS, Keys: q.cfg.Keys, Idle: q.cfg.Idle},
		map[string]quicdoor.Handler{protocolH3: q.h3.handle, session.Protocol: q.sessions.handle}, limits, e.log)
	return q
}

// listen opens the socket. From then on TCP says that HTTP/3 is there.
func (q *quicSide) listen() (net.Addr, error) {
	at, err := q.door.Listen()
	if err != nil && q.cfg.Optional {
		q.log.Warn("QUIC is not spoken: its port is not free; set quic.listen to another one, or to none", "error", err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	q.open = true
	if udp, ok := at.(*net.UDPAddr); ok {
		q.advertise(udp.Port)
	}
	return at, nil
}

// alternative is how long a client may remember that HTTP/3 is spoken, in seconds. It comes back to TCP by itself.
const alternative = 86_400

func (q *quicSide) advertise(port int) {
	value := []byte(`h3=":` + strconv.Itoa(port) + `"; ma=` + strconv.Itoa(alternative))
	q.edge.alt.Store(&value)
}

// run serves until shutdown or drop. When the socket fails before that, requests over TCP go on.
func (q *quicSide) run() {
	if !q.open {
		return
	}
	err := q.door.Run()
	q.edge.alt.Store(nil)
	if err != nil {
		q.log.Error("QUIC is not spoken any more, HTTP/1.1 is; restart the gateway", "error", err)
	}
}

// shutdown ends connections in order, and all that are left when ctx ends.
func (q *quicSide) shutdown(ctx context.Context) error {
	if !q.open {
		return nil
	}
	q.edge.alt.Store(nil)
	q.door.Shut()
	ended := make(chan error, 1)
	go func() { ended <- q.sessions.shutdown(ctx) }()
	err := q.h3.shutdown(ctx)
	err = errors.Join(err, <-ended)
	q.door.Linger(ctx)
	if failed := q.door.Close(); failed != nil {
		err = errors.Join(err, fmt.Errorf("close the QUIC socket: %w", failed))
	}
	return err
}

func (q *quicSide) drop() {
	if q.open {
		q.door.Shut()
		q.sessions.stop()
		q.h3.server.Close()
		q.door.Close()
	}
}

// watch exports the sizes of the socket's buffers.
func (q *quicSide) watch(reg prometheus.Registerer) error {
	if reg == nil {
		return nil
	}
	gauge := func(name, help string, of func(quicdoor.Buffers) int) error {
		return reg.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(of(q.door.Buffers())) }))
	}
	return errors.Join(q.sessions.watch(reg),
		gauge("headgate_quic_receive_buffer_bytes", "Receive buffer of the UDP socket that the kernel granted; 0: not known.", func(b quicdoor.Buffers) int { return b.Read }),
		gauge("headgate_quic_send_buffer_bytes", "Send buffer of the UDP socket that the kernel granted; 0: not known.", func(b quicdoor.Buffers) int { return b.Write }),
		gauge("headgate_quic_buffer_wanted_bytes", "How large each of them should be.", func(quicdoor.Buffers) int { return quicdoor.Wanted }))
}
