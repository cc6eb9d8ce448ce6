package ingest

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/problem"
	"github.com/headgate-io/headgate/internal/requestid"
)

// listener accepts connections as long as it is open: being out of file descriptors or memory for a while only
// makes it wait, where fasthttp on a bare listener would stop serving for good.
type listener struct {
	net.Listener
	*roster
	log     *slog.Logger
	secure  *tls.Config // nil: connections speak plainly
	express *express    // nil: there is none
	shut    chan struct{}
	once    sync.Once
}

func newListener(ln net.Listener, r *roster, secure *tls.Config, log *slog.Logger) *listener {
	return &listener{Listener: ln, roster: r, log: log, secure: secure, shut: make(chan struct{})}
}

const (
	firstPause   = 5 * time.Millisecond
	longestPause = time.Second
)

// Accept returns the next connection within the limits.
func (l *listener) Accept() (net.Conn, error) {
	for pause := firstPause; ; {
		raw, err := l.Listener.Accept()
		switch {
		case err == nil:
			if c := l.admit(raw); c != nil {
				return c, nil
			}
			pause = firstPause
			continue
		case !passing(err):
			return nil, err
		}
		if pause == firstPause {
			l.log.Warn("cannot accept connections, trying again until it works", "error", err)
		}
		if !l.wait(pause) {
			return nil, net.ErrClosed
		}
		pause = min(2*pause, longestPause)
	}
}

// wait lets d pass and reports false when the listener is closed meanwhile.
func (l *listener) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.shut:
		return false
	}
}

// passing reports whether accepting can work again after err without our doing anything.
func passing(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.EINTR} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Close stops accepting; connections stay open. It may be called twice.
func (l *listener) Close() (err error) {
	l.once.Do(func() {
		close(l.shut)
		err = l.Listener.Close()
	})
	return err
}

func (l *listener) closed() bool {
	select {
	case <-l.shut:
		return true
	default:
		return false
	}
}

// admit takes a connection in, or tells it that there are too many and returns nil; one that would first have to shake
// hands is only closed. A connection that comes while the listener closes is dropped.
func (l *listener) admit(raw net.Conn) *conn {
	c := newConn(raw, l.roster, l.secure)
	no := l.enter(c, l.closed)
	if no == nil {
		if l.express != nil && l.secure == nil {
			c.useExpress(l.express)
		}
		return c
	}
	if no.Code == event.Draining || l.secure != nil {
		raw.Close()
		return nil
	}
	turnAway(raw, no)
	l.leave(raw)
	return nil
}

// turnAway answers on a connection that was not answered on before. So little fits into the empty send buffer of
// a new socket: it does not block.
func turnAway(raw net.Conn, p *event.Problem) {
	status, retryable, doc := problem.Render(p, requestid.New(time.Now()))
	after := ""
	if retryable {
		after = fmt.Sprintf("Retry-After: %d\r\n", 1+rand.IntN(5))
	}
	fmt.Fprintf(raw, "HTTP/1.1 %d Refused\r\nContent-Type: %s\r\n%sConnection: close\r\nContent-Length: %d\r\n\r\n%s",
		status, problem.MediaType, after, len(doc), doc)
}
