package natsd

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	// watchEvery is how often it is asked whether the store takes messages. It costs a look into its folder.
	watchEvery = time.Second
	// peekEvery is how often it is asked whether there is one more message block: a file name for each stream.
	peekEvery = 100 * time.Millisecond
	// stopTimeout is what a server has to leave the folder before a new one may use it.
	stopTimeout = 30 * time.Second
	// Pauses between attempts to open the store again.
	firstPause, longestPause = time.Second, 15 * time.Second
)

// door leads connections to the server that runs, also when they come again.
type door struct{ s *Server }

// InProcessConn is called by the client library.
func (d door) InProcessConn() (net.Conn, error) {
	if ns := d.s.ns.Load(); ns != nil {
		return ns.InProcessConn()
	}
	return nil, server.ErrServerNotRunning
}

// Run watches over the store until ctx ends. A write that failed, on a full disk for example, makes a server refuse all
// further ones for good, without an answer: it is stopped, and another one opens the folder as soon as the disk has room. An
// error is that another folder is in its place: what is stored is not found there.
func (s *Server) Run(ctx context.Context) error {
	pause := firstPause
	nc, err := s.Connect("watch")
	if err != nil {
		return nil // it is closed already
	}
	defer s.known.close()
	timer := time.NewTimer(watchEvery)
	defer timer.Stop()
	peek := time.NewTicker(peekEvery)
	defer peek.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-peek.C:
			s.known.peek()
			continue
		case <-timer.C:
		}
		wait := watchEvery
		if why := s.sick(); why == "" {
			pause = firstPause
			if err := s.lookAfter(ctx, nc); err != nil {
				return err
			}
		} else if s.hasRoom(why) && !s.heal(ctx, why) {
			wait, pause = pause, min(2*pause, longestPause)
		}
		timer.Reset(wait)
	}
}

// Fault says why nothing can be stored, "" when all is well.
func (s *Server) Fault() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault
}

// Reopened counts how often the store was opened again.
func (s *Server) Reopened() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reopened
}

// sick says what keeps the server from storing, "" for nothing.
func (s *Server) sick() string {
	ns := s.ns.Load()
	if ns == nil {
		return s.Fault()
	}
	if !ns.JetStreamEnabled() {
		return "the server has given up its store"
	}
	h := ns.Healthz(&server.HealthzOptions{Details: true})
	for _, e := range h.Errors {
		if strings.Contains(e.Error, "write error") { // what a stream cannot read is no better for being opened again
			return e.Error
		}
	}
	return ""
}

// hasRoom tells whether the disk has room for the store to be opened again.
func (s *Server) hasRoom(why string) bool {
	if s.cfg.Free != nil {
		if free, err := s.cfg.Free(); err == nil && free < s.cfg.Need {
			s.setFault(fmt.Sprintf("%s; the disk has %d KiB left, %d KiB are needed to go on: make room", why, free>>10, s.cfg.Need>>10))
			return false
		}
	}
	s.setFault(why)
	return true
}

// heal opens the store again, and reports whether that has gone well.
func (s *Server) heal(ctx context.Context, why string) bool {
	s.healing.Lock()
	defer s.healing.Unlock()
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed || ctx.Err() != nil {
		return false
	}
	began := time.Now()
	ns, err := s.reopen(ctx)
	if err != nil {
		s.log.Error("the store could not be opened again; it is tried further on", "error", err)
		s.setFault(fmt.Sprintf("%s; it could not be opened again: %v", why, err))
		return false
	}
	s.ns.Store(ns)
	if err := s.account(began); err != nil {
		s.log.Error("what the store has lost could not be reported", "error", err)
	}
	s.mu.Lock()
	s.fault = ""
	s.reopened++
	s.mu.Unlock()
	s.log.Info("the store was opened again and takes messages", "after", time.Since(began).Round(time.Millisecond).String())
	return true
}

// setFault notes a fault, and logs the first.
func (s *Server) setFault(why string) {
	s.mu.Lock()
	first := s.fault == ""
	s.fault = why
	s.mu.Unlock()
	if first {
		s.log.Error("THE STORE TAKES NO MESSAGES: it is opened again as soon as that can be", "cause", why)
	}
}

// reopen stops the server that runs and starts another; s.healing is held.
func (s *Server) reopen(ctx context.Context) (*server.Server, error) {
	if ns := s.ns.Swap(nil); ns != nil {
		removed, believed := s.removed(), s.believed
		s.leave(func() {
			ns.Shutdown()
			if err := s.remakeFolders(removed, believed); err != nil {
				s.log.Error("the folder of the store could not be made again", "error", err)
			}
			s.putBack(removed)
		})
	}
	if s.leaving != nil {
		timer := time.NewTimer(stopTimeout)
		defer timer.Stop()
		select {
		case <-s.leaving:
			s.leaving = nil
		case <-timer.C:
			return nil, fmt.Errorf("the server before does not leave the folder within %v", stopTimeout)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if _, err := os.Stat(filepath.Dir(s.cfg.Dir)); err != nil {
		return nil, err // nothing is made where the data folder was
	}
	if err := writeAgain(s.cfg.Dir); err != nil {
		return nil, err
	}
	s.folder, _ = os.Stat(s.cfg.Dir)
	return s.open(ctx)
}

// leave calls stop, which returns when a server uses the folder no more, and lets it take its time.
func (s *Server) leave(stop func()) {
	left := make(chan struct{})
	s.leaving = left
	go func() {
		defer close(left)
		stop()
	}()
}
