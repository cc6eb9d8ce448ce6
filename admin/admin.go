// Package admin is the listener for looking at a running gateway and steering it: health, metrics, streams,
// plugins, and reading events back.
//
// It knows nothing of the other packages: what it shows and changes stands behind the small interfaces of
// Deps, which the gateway implements. Their errors are *event.Problem and become the answer; any other error
// is logged and answered as `internal`.
package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Config is what an operator can set. The zero value works.
type Config struct {
	Listen string   // TCP address; default 127.0.0.1:9090
	Hosts  []string // further names in the Host header that are ours, without port; IP addresses and localhost always are

	UploadBytes int64 // largest plugin; default 32 MiB
	RowBytes    int   // largest event shown when events are read back; default 16 MiB
	Readers     int   // reads of events at a time; default 64

	Build Build // what GET /version answers
}

// Build describes the running binary.
type Build struct {
	Version string            `json:"version"`
	Commit  string            `json:"commit,omitempty"`
	Go      string            `json:"go"`
	Modules map[string]string `json:"modules,omitempty"` // dependency path to version
}

// Deps is what the gateway gives. All are required but Log and Auth.
type Deps struct {
	Health  Health
	Streams Streams
	Routing Routing
	Chains  Chains
	Plugins Plugins
	Logs    Logs
	Trials  Trials
	Events  Events
	Purger  Purger
	Watcher Watcher
	Letters Letters
	Metrics prometheus.Gatherer
	Auth    Auth // nil: everybody may do everything
	Log     *slog.Logger
}

// Server is the admin listener.
type Server struct {
	cfg      Config
	deps     Deps
	http     *http.Server
	listener net.Listener

	readers chan struct{} // one token per read of events in progress
	uploads chan struct{} // one token per upload in progress
	trials  chan struct{} // one token per trial of a plugin in progress

	stopping context.Context // ends when the server begins to stop: ends the reads that follow
	stop     context.CancelFunc
}

const (
	headerTimeout  = 5 * time.Second
	requestTimeout = time.Minute // to read a whole request, and to write an answer that is not followed
	idleTimeout    = 90 * time.Second
	headerBytes    = 16 << 10
	uploadsAtOnce  = 2 // each holds a whole module in memory
	trialsAtOnce   = 2 // each may take a processor for some time
)

// New checks the configuration and starts nothing.
func New(cfg Config, deps Deps) (*Server, error) {
	if err := deps.complete(); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg.withDefaults(), deps: deps}
	s.readers = make(chan struct{}, s.cfg.Readers)
	s.uploads = make(chan struct{}, uploadsAtOnce)
	s.trials = make(chan struct{}, trialsAtOnce)
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.http = &http.Server{
		Handler:           s.guard(s.recovering(s.routes())),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      requestTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    headerBytes,
		ErrorLog:          slog.NewLogLogger(deps.Log.Handler(), slog.LevelDebug),
	}
	return s, nil
}

func (c Config) withDefaults() Config {
	if c.Listen == "" {
		c.Listen = "127.0.0.1:9090"
	}
	if c.UploadBytes == 0 {
		c.UploadBytes = 32 << 20
	}
	if c.RowBytes == 0 {
		c.RowBytes = 16 << 20
	}
	if c.Readers == 0 {
		c.Readers = 64
	}
	return c
}

// complete fills in the log and reports what is missing.
func (d *Deps) complete() error {
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	for name, missing := range map[string]bool{
		"Health": d.Health == nil, "Streams": d.Streams == nil, "Routing": d.Routing == nil, "Chains": d.Chains == nil,
		"Plugins": d.Plugins == nil, "Logs": d.Logs == nil, "Trials": d.Trials == nil, "Events": d.Events == nil, "Purger": d.Purger == nil, "Watcher": d.Watcher == nil, "Letters": d.Letters == nil, "Metrics": d.Metrics == nil,
	} {
		if missing {
			return fmt.Errorf("admin: no %s given", name)
		}
	}
	return nil
}

// Listen opens the socket and returns its address. It is called once, before Run.
func (s *Server) Listen() (net.Addr, error) {
	l, err := net.Listen("tcp", s.cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("admin: %w", err)
	}
	s.listener = l
	return l.Addr(), nil
}

// Run serves until Shutdown, and then returns nil at once while Shutdown waits for the requests in progress.
// When ctx ends all connections are closed.
func (s *Server) Run(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { s.stop(); _ = s.http.Close() })()
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) && s.stopping.Err() == nil {
		return fmt.Errorf("admin: serve: %w", err)
	}
	return nil
}

// Shutdown stops accepting, ends reads that follow, and waits for the other requests until ctx ends. It may be
// called more than once, also without Run.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stop()
	err := s.http.Shutdown(ctx)
	if s.listener != nil {
		_ = s.listener.Close() // open still only when Run was never called
	}
	if err != nil {
		_ = s.http.Close()
		return fmt.Errorf("admin: stop: %w", err)
	}
	return nil
}
