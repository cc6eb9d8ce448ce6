package ingest

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/sdk/session"
)

// sessionConn is one connection that speaks headgate/1: sessions on its streams, and the datagrams that name one of them.
type sessionConn struct {
	of      *sessions
	conn    carrier
	others  int            // of WebTransport: sessions in the same connection beside this one
	alone   bool           // it has one session, whose stream the client has no number of
	streams sync.WaitGroup // sessions

	accepting context.Context // ends when no further sessions are taken, and those that there are go elsewhere
	over      func()          // to be called at the end

	opened *quic.Conn // on which clients open streams; nil for WebTransport

	mu    sync.Mutex // guards what follows
	first bool       // the session that goes with the connection's own goroutine is there
	more  bool       // further streams are waited for, by a goroutine of its own
	known map[uint64]*attachment
	here  int         // sessions that are on a stream, or want to be
	idle  *time.Timer // runs while there are none

	listening sync.WaitGroup // who reads datagrams, from when heard is set
	heard     bool           // guarded by mu

	queue chan []byte // datagrams that wait; nil before the first
	plan  *plan       // of the one that is taken now
}

// sessionConnIdle is how long a connection may have no session.
const sessionConnIdle = time.Minute

// carrier is what sessions and datagrams come over: a connection, or WebTransport within one.
type carrier interface {
	Context() context.Context
	RemoteAddr() net.Addr
	ReceiveDatagram(ctx context.Context) ([]byte, error)
}

// newSessionConn returns one that leave ends when it has had no session for long.
func newSessionConn(s *sessions, conn carrier, leave func()) *sessionConn {
	sc := &sessionConn{of: s, conn: conn}
	sc.over = sc.live()
	sc.idle = time.AfterFunc(sessionConnIdle, leave)
	return sc
}

// place is how datagrams name a session.
func (sc *sessionConn) place(a *attachment) uint64 {
	if sc.alone {
		return 0
	}
	return session.Place(int64(a.str.StreamID()))
}

// serve runs a session on a stream.
func (sc *sessionConn) serve(str *quic.Stream) {
	room := sc.of.enter(sc.move(1) + sc.others)
	defer sc.of.leave()
	defer sc.move(-1)
	if !room {
		sc.turnAway(str)
		return
	}
	sc.of.serve(sc, str)
}

// move counts sessions, and returns how many there are.
func (sc *sessionConn) move(n int) int {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if sc.here += n; sc.here == 0 {
		sc.idle.Reset(sessionConnIdle)
	} else {
		sc.idle.Stop()
	}
	return sc.here
}

// handle serves the sessions of one connection.
func (s *sessions) handle(conn *quic.Conn) {
	sc := newSessionConn(s, conn, func() { conn.CloseWithError(0, "there was no session for a minute") })
	sc.opened = conn
	s.quiet.join(sc)
	for sc.next() {
	}
	sc.drain()
}

// next serves a session here, on the connection's own goroutine: most connections have no other one, and who waited for further streams
// of each would hold 2.5 KiB. It reports whether another one may come.
func (sc *sessionConn) next() bool {
	str, err := sc.opened.AcceptStream(sc.accepting)
	if err != nil {
		return false
	}
	sc.mu.Lock()
	sc.first = true
	sc.mu.Unlock()
	sc.further() // one that came with it
	sc.serve(str)
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.first = false
	return !sc.more
}

// further looks whether the client has opened a stream beside the first. Who has two may have more: from then on they are waited for.
func (sc *sessionConn) further() {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if !sc.first || sc.more {
		return
	}
	if str, _ := sc.opened.AcceptStream(glance{context.Background()}); str != nil {
		sc.streams.Go(func() { sc.serve(str) })
		sc.expect()
	}
}

// expect waits for further streams; sc.mu is held.
func (sc *sessionConn) expect() {
	if !sc.first || sc.more {
		return
	}
	sc.more = true
	sc.streams.Go(func() {
		for {
			str, err := sc.opened.AcceptStream(sc.accepting)
			if err != nil {
				return
			}
			sc.streams.Go(func() { sc.serve(str) })
		}
	})
}

// drain returns when the last session has ended, and the connection with it.
func (sc *sessionConn) drain() {
	defer sc.over()
	defer sc.of.quiet.leave(sc)
	sc.streams.Wait()
	sc.idle.Stop()
	rest := time.NewTimer(settled) // in which the client reads what was written, and closes
	defer rest.Stop()
	select {
	case <-sc.opened.Context().Done():
	case <-rest.C:
		sc.opened.CloseWithError(0, "")
	}
	sc.listening.Wait()
}

// live begins the age of a connection: at its end no further sessions are taken on it, and those that it has hear GOAWAY, the
// outcomes of what was taken, and FIN. Their clients come back on another connection, through a load balancer perhaps, and go
// on. over is called when the connection has ended.
func (sc *sessionConn) live() (over func()) {
	accepting, stop := context.WithCancel(sc.of.accepting)
	sc.accepting = accepting
	if sc.of.age <= 0 {
		return stop
	}
	timer := time.AfterFunc(lifetime(sc.of.age), stop)
	return func() { timer.Stop(); stop() }
}

// lifetime is how old a connection gets: an eighth less at most, so that those which were opened together, after a start, do
// not all come back together.
func lifetime(age time.Duration) time.Duration { return age - rand.N(age/8+1) }

// elsewhere is said to a session that has not begun when its connection takes none any more.
func elsewhere() *session.Error {
	return &session.Error{Retryable: true, Code: string(event.Draining), Detail: "nothing is taken on this connection any more; go on on another one"}
}
