package ingest

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"github.com/headgate-io/headgate/internal/budget"
	"github.com/headgate-io/headgate/internal/window"
)

// Nowhere in the place of an address opens no listener.
const Nowhere = "none"

// DefaultTLSListen is where TLS is spoken when nothing else is said.
const DefaultTLSListen = "127.0.0.1:8443"

// Config is the HTTP/1.1 listeners; zero values mean the defaults.
type Config struct {
	Listen                   string        // address, 127.0.0.1:8080; port 0 takes a free one; Nowhere: only with TLS
	TLSListen                string        // address of a second listener, which speaks TLS; 127.0.0.1:8443
	TLS                      *tls.Config   // its certificates; nil: there is none
	QUIC                     *QUICConfig   // the listener for HTTP/3; nil: there is none
	Origins                  []string      // whose pages may send with a browser, see CheckOrigin; nil: none but our own
	ReadTimeout              time.Duration // for a header, and for each next byte of a body; 10 s
	IdleTimeout              time.Duration // between requests; 90 s
	RequestTimeout           time.Duration // from the end of the body to the answer; 30 s
	MaxConnections           int           // 20,000
	MaxSockets               int           // of them over TCP; 0: all
	MaxConnectionsPerAddress int           // 0: no limit
	MaxRequestsPerConnection int           // 0: no limit
	MaxConnectionAge         time.Duration // then the next answer closes it; 0: no limit
}

// Deps are what a Server uses and others own.
type Deps struct {
	Log     *slog.Logger          // nil: slog.Default()
	Metrics prometheus.Registerer // nil: none
	Budget  *budget.Budget        // bytes of request bodies held in memory; nil: 256 MiB of its own
	Auth    Auth                  // who may send; nil: everybody
	Keys    *window.Keys          // requests by idempotency key; nil: an empty window of its own
	Rates   Rates                 // how much each caller may send; nil: as much as it likes
	Owners  window.Secret         // keys who owns what is remembered: the same after a restart; zero: one of this server's
}

// Server is the ingest side of a gateway: HTTP/1.1, plain and with TLS.
type Server struct {
	cfg    Config
	log    *slog.Logger
	http   *fasthttp.Server
	open   *roster
	lns    []*listener
	fast   *express           // nil: the number of requests of a connection is limited, which fasthttp counts
	quic   *quicSide          // nil: QUIC is not spoken
	cancel context.CancelFunc // ends the context of the requests in progress
}

const (
	readBuffer = 16 << 10    // and thereby the largest header
	silentTime = time.Second // that a connection without a first byte gets when the server stops
)

// New returns a server for the streams of gate. Nothing runs yet.
func New(cfg Config, gate Gate, deps Deps) (*Server, error) {
	orDefault(&cfg.Listen, "127.0.0.1:8080")
	orDefault(&cfg.TLSListen, DefaultTLSListen)
	orDefault(&cfg.ReadTimeout, 10*time.Second)
	orDefault(&cfg.IdleTimeout, 90*time.Second)
	orDefault(&cfg.RequestTimeout, 30*time.Second)
	orDefault(&cfg.MaxConnections, 20_000)
	orDefault(&deps.Log, slog.Default())
	if deps.Keys == nil {
		deps.Keys = window.NewKeys(100_000, 10*time.Minute, time.Now())
	}
	if deps.Budget == nil {
		deps.Budget = budget.New(256 << 20)
	}
	if deps.Owners == (window.Secret{}) {
		rand.Read(deps.Owners[:]) // never fails
	}
	m, err := newMetrics(deps.Metrics)
	if err != nil {
		return nil, err
	}
	c := &core{gate: gate, auth: deps.Auth, rates: deps.Rates, budget: deps.Budget, metrics: m, log: deps.Log, timeout: cfg.RequestTimeout,
		heavy: newHeavy(max(1, runtime.GOMAXPROCS(0)/2)), keys: deps.Keys,
		owners: deps.Owners}
	if err := watchKeys(deps.Metrics, c.keys); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, log: deps.Log, open: newRoster(&cfg)}
	if err := s.open.watch(deps.Metrics); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	e := &edge{core: c, log: deps.Log, wait: cfg.ReadTimeout, age: cfg.MaxConnectionAge, cors: newCORS(cfg.Origins)}
	s.http = newFast(ctx, &cfg, e)
	if cfg.MaxRequestsPerConnection == 0 {
		s.fast = &express{edge: e, ctx: ctx, idle: cfg.IdleTimeout}
	}
	if cfg.QUIC != nil {
		s.quic = newQUICSide(ctx, &cfg, e, s.open)
		err = s.quic.watch(deps.Metrics)
	}
	return s, err
}

// newFast configures fasthttp. Requests run under ctx.
func newFast(ctx context.Context, cfg *Config, e *edge) *fasthttp.Server {
	return &fasthttp.Server{
		Handler:        func(fast *fasthttp.RequestCtx) { e.handle(ctx, fast) },
		ErrorHandler:   e.failed,
		HeaderReceived: e.headerReceived,
		Logger:         fastLog{e.log},

		StreamRequestBody:            true, // else the announced length is allocated
		DisablePreParseMultipartForm: true,
		MaxRequestBodySize:           1, // see headerReceived; what a body may have is decided by core
		ReadBufferSize:               readBuffer,
		ReduceMemoryUsage:            true,
		Concurrency:                  cfg.MaxConnections + 1, // the listener refuses before that

		ReadTimeout:        cfg.ReadTimeout, // for writing see conn
		IdleTimeout:        cfg.IdleTimeout,
		MaxRequestsPerConn: cfg.MaxRequestsPerConnection,

		CloseOnShutdown:       true,
		NoDefaultServerHeader: true,
		NoDefaultContentType:  true,
		LazyRequestTime:       true,
		SecureErrorLogMessage: true,
	}
}

// Addresses are what a server listens on; nil: it does not.
type Addresses struct{ Plain, TLS, QUIC net.Addr }

// Listen opens the sockets and returns their addresses. Connections wait until Run.
func (s *Server) Listen() (a Addresses, err error) {
	if s.cfg.Listen != Nowhere {
		a.Plain, err = s.listen(s.cfg.Listen, nil)
	}
	if s.cfg.TLS != nil && err == nil {
		a.TLS, err = s.listen(s.cfg.TLSListen, s.cfg.TLS)
	}
	if s.quic != nil && err == nil {
		a.QUIC, err = s.quic.listen()
	}
	if err != nil {
		s.shut()
		s.lns = nil
	}
	return a, err
}

func (s *Server) listen(address string, secure *tls.Config) (net.Addr, error) {
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for HTTP: %w", err)
	}
	l := newListener(ln, s.open, secure, s.log)
	l.express = s.fast
	s.lns = append(s.lns, l)
	return ln.Addr(), nil
}

// shut closes the listeners; connections stay open.
func (s *Server) shut() (err error) {
	for _, ln := range s.lns {
		err = errors.Join(err, ln.Close())
	}
	return err
}

// Run serves until Shutdown, or until ctx ends, which drops every connection at once. It returns when the last
// connection is closed. Listen comes before.
func (s *Server) Run(ctx context.Context) (err error) {
	if len(s.lns) == 0 {
		return errors.New("run HTTP: not listening")
	}
	stop := context.AfterFunc(ctx, s.drop)
	defer stop()
	if s.quic != nil {
		over := make(chan struct{})
		go func() { defer close(over); s.quic.run() }()
		defer func() { <-over }()
	}
	ended := make(chan error)
	for _, ln := range s.lns {
		go func() { ended <- s.http.Serve(ln) }()
	}
	for range s.lns {
		if failed := <-ended; failed != nil {
			s.drop()
			err = errors.Join(err, fmt.Errorf("serve HTTP: %w", failed))
		}
	}
	s.open.drained()
	return err
}

// Shutdown stops accepting, closes idle connections, lets requests in progress be answered with Connection: close, and
// returns when none is left. When ctx ends first, the connections that are left are dropped and its error is returned.
func (s *Server) Shutdown(ctx context.Context) error {
	if len(s.lns) == 0 {
		return nil
	}
	dropped := make(chan struct{})
	// Both sides at once: what goes on over QUIC may hold the stop up when nothing is left over TCP, and http3 waits for what it closes.
	cancel := context.AfterFunc(ctx, func() { defer close(dropped); s.drop() })
	err := s.shut()
	overQUIC := make(chan error, 1)
	if s.quic != nil {
		go func() { overQUIC <- s.quic.shutdown(ctx) }()
	} else {
		close(overQUIC)
	}
	silent := time.AfterFunc(silentTime, func() { s.open.kill(func(c *conn) bool { return c.silent.Load() }) })
	defer silent.Stop()
	if s.fast != nil {
		s.fast.stop(s.open)
	}
	err = errors.Join(err, s.http.ShutdownWithContext(ctx), <-overQUIC)
	if !cancel() {
		if <-dropped; !errors.Is(err, ctx.Err()) {
			err = errors.Join(err, ctx.Err())
		}
	}
	return err
}

// drop ends everything at once.
func (s *Server) drop() {
	s.cancel()
	s.shut()
	if s.quic != nil {
		s.quic.drop()
	}
	s.open.kill(func(*conn) bool { return true })
}
