// Package natsd runs a NATS server with JetStream inside the process: reached without a socket, every write
// synced before it is confirmed. Several servers, each with its own folder, live side by side.
package natsd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Config says where a server stores and how much. Name and Dir are required.
type Config struct {
	Name     string // names the server in logs and in its own state; keep it over restarts
	Dir      string // store folder, used by this server alone; the caller holds a lock on it
	MaxStore int64  // bytes of all its streams together; 0: the server's choice, 75 % of the free disk

	MaxPayload   int           // bytes of the largest message with its headers; 0: 8 MiB
	StartTimeout time.Duration // recovery of the store included; 0: 60 s

	// Free says how many bytes the disk has left, and Need how many a store that ran out of them is opened again with. nil and
	// 0: nobody is asked.
	Free func() (int64, error)
	Need int64

	// Aside is the folder that gets the blocks in which messages are damaged, with a report; what is sound of them stays in
	// the store. Empty: a damaged store is a *DamagedError and stays as it is.
	Aside string

	// PutBack has a folder that is removed while it is in use put back, with what can still be read of its files.
	PutBack bool
}

const (
	defaultMaxPayload   = 8 << 20
	defaultStartTimeout = 60 * time.Second

	// maxMemory bounds streams in memory, of which there are none; consumers of readers keep their state there.
	maxMemory = 64 << 20
)

// ErrNotReady says that a server has not recovered its store in time. It is still at it.
var ErrNotReady = errors.New("not ready")

// Server is a running server. What runs may be replaced by a new one on the same folder, which the connections go over to.
type Server struct {
	cfg Config
	log *slog.Logger

	damage, everything []Damage // damage is guarded by mu

	known  *files      // of the store; used by Run alone, and while it is opened again
	folder os.FileInfo // of the store, nil for unknown; likewise

	ns atomic.Pointer[server.Server] // nil while the store is opened again

	mu       sync.Mutex // guards what follows up to reopened
	tell     func(Damage)
	closed   bool
	conns    []*nats.Conn // handed out by Connect
	fault    string       // why nothing is stored, "" when all is well
	reopened uint64       // times that the store was opened again

	healing sync.Mutex    // held while the store is opened again; guards leaving and believed
	leaving chan struct{} // closed once a server that was given up has left the folder; nil: none was
	done    chan struct{} // closed when the server has gone

	believed map[string]known // what the store held before files of it vanished; nil: none did
}

// Start runs a server and returns once its store is recovered; a context that ended meanwhile is an error then. A
// recovery that takes longer than cfg.StartTimeout can't be interrupted: Start returns an error, the server stops
// in the background as soon as it is through, and its folder must not be used until then.
func Start(ctx context.Context, cfg Config, log *slog.Logger) (*Server, error) {
	s := &Server{cfg: cfg, log: log.With("server", cfg.Name), known: &files{dir: cfg.Dir}, done: make(chan struct{})}
	ns, err := s.open(ctx)
	if err != nil {
		return nil, fmt.Errorf("start nats server %s in %s: %w", cfg.Name, cfg.Dir, err)
	}
	s.ns.Store(ns)
	if err := s.recall(); err != nil {
		ns.Shutdown()
		return nil, fmt.Errorf("start nats server %s in %s: %w", cfg.Name, cfg.Dir, err)
	}
	s.folder, _ = os.Stat(cfg.Dir)
	return s, nil
}

// open examines the store and returns a server that has recovered it.
func (s *Server) open(ctx context.Context) (*server.Server, error) {
	opts, err := options(s.cfg)
	if err != nil {
		return nil, err
	}
	if err := examineStore(s.cfg.Dir, s.cfg.Aside, s.log); err != nil {
		return nil, err
	}
	ns, err := server.NewServer(opts)
	if err != nil {
		return nil, err
	}
	logs := &logger{log: s.log}
	ns.SetLoggerV2(logs, false, false, false)
	if err := s.run(ctx, ns, logs, cmp.Or(s.cfg.StartTimeout, defaultStartTimeout)); err != nil {
		return nil, err
	}
	return ns, nil
}

// Damage returns what is reported lost of the store, at this start and before, until the report is taken away.
func (s *Server) Damage() []Damage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.damage
}

// Tell has tell called with every damage that is found from now on.
func (s *Server) Tell(tell func(Damage)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell = tell
}

// EverDamaged is Damage with what was taken away.
func (s *Server) EverDamaged() []Damage { return s.everything }

func options(cfg Config) (*server.Options, error) {
	if cfg.Name == "" || cfg.Dir == "" {
		return nil, errors.New("nats server: a name and a folder are needed")
	}
	if cfg.MaxPayload < 0 || cfg.MaxPayload > math.MaxInt32 || cfg.MaxStore < 0 {
		return nil, fmt.Errorf("nats server %s: sizes out of range", cfg.Name)
	}
	return &server.Options{
		ServerName:             cfg.Name,
		DontListen:             true,
		NoSigs:                 true,
		DisableJetStreamBanner: true,
		JetStream:              true,
		StoreDir:               cfg.Dir,
		SyncAlways:             true,
		JetStreamMaxStore:      cfg.MaxStore,
		JetStreamMaxMemory:     maxMemory,
		MaxPayload:             int32(cmp.Or(cfg.MaxPayload, defaultMaxPayload)),
	}, nil
}

// run starts ns and waits until it serves. Server.Start reports failure through the log only.
func (s *Server) run(ctx context.Context, ns *server.Server, logs *logger, limit time.Duration) error {
	started := make(chan struct{})
	go func() {
		ns.Start()
		close(started)
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-started:
	case <-timer.C:
		s.leave(func() { <-started; ns.Shutdown() })
		return fmt.Errorf("%w after %v", ErrNotReady, limit)
	}
	err := ctx.Err()
	if reason := logs.fatal(); reason != "" {
		err = errors.New(reason)
	}
	if err != nil {
		ns.Shutdown()
	}
	return err
}

// Connect returns a new connection inside the process. Traffic that must not wait for other traffic takes one of
// its own. Close ends it.
func (s *Server) Connect(name string) (*nats.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.ns.Load() == nil {
		return nil, fmt.Errorf("connect to nats server %s: %w", s.cfg.Name, server.ErrServerNotRunning)
	}
	nc, err := nats.Connect("", nats.InProcessServer(door{s}), nats.Name(name), nats.MaxReconnects(-1),
		nats.ReconnectWait(100*time.Millisecond), nats.ReconnectBufSize(-1),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			s.log.Warn("nats connection", "name", name, "error", err)
		}))
	if err != nil {
		return nil, fmt.Errorf("connect to nats server %s: %w", s.cfg.Name, err)
	}
	s.conns = append(s.conns, nc)
	return nc, nil
}

// Close ends the connections, stops the server and waits until it is gone; what it confirmed is on the disk
// before. It may be called twice and concurrently: every call waits.
func (s *Server) Close() {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	s.mu.Unlock()
	if !first {
		<-s.done
		return
	}
	for _, nc := range s.conns {
		nc.Close()
	}
	s.healing.Lock() // until the store is open again, or that was given up
	defer s.healing.Unlock()
	if ns := s.ns.Load(); ns != nil {
		s.remember()
		ns.Shutdown() // waits for its goroutines
	}
	close(s.done)
}
