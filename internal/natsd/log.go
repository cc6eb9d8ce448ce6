package natsd

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
)

// logger takes the server's own log lines into ours: its notices are of interest only when one looks for
// trouble, hence debug.
type logger struct {
	log *slog.Logger

	mu    sync.Mutex
	cause string // the first fatal line
}

// Noticef, Warnf, Errorf, Debugf and Tracef write one line.
func (l *logger) Noticef(format string, v ...any) { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l *logger) Warnf(format string, v ...any) {
	l.log.Log(context.Background(), warnLevel(format), fmt.Sprintf(format, v...))
}
func (l *logger) Errorf(format string, v ...any) { l.log.Error(fmt.Sprintf(format, v...)) }
func (l *logger) Debugf(format string, v ...any) { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l *logger) Tracef(format string, v ...any) { l.log.Debug(fmt.Sprintf(format, v...)) }

// warnLevel is debug for what the server does after every kill, and what nobody needs to know: it reads a block again to
// find messages that expire, of which there are none.
func warnLevel(format string) slog.Level {
	if strings.Contains(format, "TTL state is outdated") {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}

// Fatalf keeps the line for whoever started the server; the server goes on as if the process ended here.
func (l *logger) Fatalf(format string, v ...any) {
	line := fmt.Sprintf(format, v...)
	l.log.Error(line)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause == "" {
		l.cause = line
	}
}

func (l *logger) fatal() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}
