package plugins

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/sdk/abi"
)

// linesPerSecond is how many lines all instances of a step may log together; the rest is counted.
const linesPerSecond = 100

// surroundings is what the instances of one step share outside of their memory. It is safe for concurrent use.
type surroundings struct {
	log  *slog.Logger
	bill *bill
	tell func(level slog.Level, guest bool, text string) // keeps a line in the version's journal; nil: there is none
	last atomic.Pointer[string]                          // the line logged last: guests say there why they refuse

	mu     sync.Mutex
	second int64 // guarded by mu: the second that used belongs to
	used   int   // guarded by mu
}

// guest is one instance as its host functions see it. Like the instance it belongs to one goroutine at a time.
type guest struct {
	*surroundings
	leash
	random  *rand.ChaCha8
	pending []byte // what was written to standard output or error since the last line end
}

// guestKey is the context key of the *guest: a context is all that the runtime hands through to a host function.
type guestKey struct{}

func newGuest(s *surroundings, all *seats) *guest {
	var seed [32]byte
	crand.Read(seed[:])
	return &guest{surroundings: s, leash: leash{began: time.Now(), limit: initTime, seats: all}, random: rand.NewChaCha8(seed)}
}

func guestOf(ctx context.Context) *guest { return ctx.Value(guestKey{}).(*guest) }

// allow reports whether one more line may be logged now.
func (s *surroundings) allow() bool {
	now := time.Now().Unix()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.second != now {
		s.second, s.used = now, 0
	}
	if s.used++; s.used == linesPerSecond+1 {
		s.note(slog.LevelWarn, "more than %d lines in a second: the rest of this second is counted only", linesPerSecond)
	}
	return s.used <= linesPerSecond
}

// line logs one line of a guest, cut to abi.MaxLogLine.
func (s *surroundings) line(level slog.Level, text []byte) {
	if !s.allow() {
		s.bill.droppedLines.Add(1)
		return
	}
	line := printable(text)
	s.last.Store(&line)
	s.log.Log(context.Background(), level, line, "from", "guest")
	if s.tell != nil {
		s.tell(level, true, line)
	}
}

// lastLine returns the line logged last, to be appended to an error, or nothing.
func (s *surroundings) lastLine() string {
	if line := s.last.Load(); line != nil {
		return ": " + strings.ReplaceAll(*line, "\n", " ")
	}
	return ""
}

// write takes what a guest prints, in pieces of any size, and logs whole lines.
func (g *guest) write(level slog.Level, p []byte) {
	for {
		at := bytes.IndexByte(p, '\n')
		if at < 0 {
			g.keep(p)
			return
		}
		g.keep(p[:at])
		g.flush(level)
		p = p[at+1:]
	}
}

func (g *guest) keep(p []byte) {
	g.pending = append(g.pending, p[:min(len(p), abi.MaxLogLine-len(g.pending))]...)
}

// flush logs what is pending as a line.
func (g *guest) flush(level slog.Level) {
	if len(g.pending) > 0 {
		g.line(level, g.pending)
	}
	g.pending = g.pending[:0]
}

func levelOf(level uint32) slog.Level {
	switch level {
	case abi.LevelDebug:
		return slog.LevelDebug
	case abi.LevelInfo:
		return slog.LevelInfo
	case abi.LevelWarn:
		return slog.LevelWarn
	}
	return slog.LevelError
}
