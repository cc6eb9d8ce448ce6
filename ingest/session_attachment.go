package ingest

import (
	"bufio"
	"context"
	"fmt"
	"net/netip"
	"runtime/debug"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/ingest/quicdoor"
	"github.com/headgate-io/headgate/sdk/session"
)

// attachment is a session on a stream of a connection. What changes in it is grouped by who owns it.
type attachment struct {
	of   *sessions
	conn *sessionConn
	str  *quic.Stream

	terms
	frameReader
	settler
	frameWriter

	mu sync.Mutex // guards the next two
	ending
	credits

	done chan struct{} // closed when the outcome of all that was taken is said, and the session may be on another stream
}

// terms are what was agreed on by HELLO. Nobody changes them afterwards.
type terms struct {
	client []byte // address when the session was opened, as text; rates follow it or the token, wherever packets come from
	addr   netip.Addr
	target []byte       // what its batches would be posted to
	fields []event.Attr // and with which header; the first is Content-Type
	name   string       // of the stream of events
	caller []byte
	// producer is who a session without token and source is for, where its events have no ids of others: itself. Its address may be
	// another one each time it comes back, and is no name for order or repetitions.
	producer []byte
	level    event.Level
	limits   Limits
	counters *streamMetrics
	state    *sessionState // what it points to is guarded by the sessions' mu
}

// frameReader is of the goroutine that serves the stream.
type frameReader struct {
	in      *bufio.Reader
	next    uint64    // sequence that is expected; 0: any behind what is settled
	last    uint64    // of what was taken on this stream
	settles sync.Once // starts who settles: a session without events needs nobody
}

// settler is of the goroutine that says outcomes; before that is started and after it has ended, of the one that serves the stream.
type settler struct {
	flights  chan *flight   // what was taken, in its order, from who serves the stream; nil before the first
	durable  chan struct{}  // full when the watermark of a session at accepted has moved
	said     uint64         // it, as it was said last
	cut      bool           // the outcome of something is lost, and what follows is not settled
	settling sync.WaitGroup // it runs
}

// frameWriter is of whoever has filled out.
type frameWriter struct {
	out  chan struct{} // full while frames are written: a channel, since that can take as long as the client likes
	mute bool          // the client takes no frames
}

// ending is whether and why the session ends on this stream.
type ending struct {
	ended chan struct{} // closed when no more is to be read
	why   *session.Error
	away  bool // because the gateway stops, or the connection is old enough
}

// credits are the bytes that the client may have in flight.
type credits struct {
	window int64 // credit when nothing is in flight
	credit int64 // bytes that the client may send; below 0 by the last frame at most
	owed   int64 // bytes that are settled, and not granted again
}

const (
	sessionIdle = 10 * time.Minute // without a frame, then a stream is ended
	wholeCredit = 1 << 20          // bytes of a session in flight
	leastCredit = 64 << 10         // while memory is scarce
	headRoom    = 256              // for what is read of a frame before its events, which need no copy
)

// serve runs one session from HELLO to its end, whatever happens in it.
func (s *sessions) serve(sc *sessionConn, str *quic.Stream) {
	a := &attachment{of: s, conn: sc, str: str, done: make(chan struct{}), frameReader: frameReader{in: bufio.NewReaderSize(str, headRoom)},
		settler: settler{durable: make(chan struct{}, 1)}, frameWriter: frameWriter{out: make(chan struct{}, 1)}, ending: ending{ended: make(chan struct{})}}
	a.addr = quicdoor.Address(sc.conn.RemoteAddr())
	a.client = a.addr.AppendTo(nil)
	defer sc.forget(a)
	defer func() {
		str.CancelRead(0)
		str.Close()
	}()
	defer func() {
		if bug := recover(); bug != nil {
			s.core.log.Error("panic in a session", "panic", fmt.Sprint(bug), "stack", string(debug.Stack()))
			a.send((&session.Error{Retryable: true, Code: string(event.Internal), Detail: "an error of the gateway, named in its log"}).Append(nil))
		}
	}()
	if no := a.hello(sc.conn.Context()); no != nil {
		a.send(no.Append(nil))
		return
	}
	a.run()
}

// run takes frames until the client or the gateway ends the session, and says the outcome of all that was taken.
func (a *attachment) run() {
	s := a.of
	s.mu.Lock()
	s.open[a] = struct{}{}
	s.mu.Unlock()
	if a.conn.accepting.Err() != nil {
		a.leave()
	}
	defer context.AfterFunc(a.conn.accepting, a.leave)()
	defer func() { // also in a panic: what was taken gets its outcome
		if a.flights != nil {
			close(a.flights)
		}
		a.settling.Wait()
		a.sayDurable()
		s.mu.Lock()
		delete(s.open, a)
		s.mu.Unlock()
		s.detach(a.state)
		close(a.done)
		a.farewell()
	}()
	no := a.read()
	if a.leaving() {
		a.send((&session.GoAway{Last: max(a.last, a.settledNow())}).Append(nil))
		return
	}
	if no != nil {
		a.end(no)
	}
}

func (a *attachment) settledNow() uint64 {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	return a.state.settled
}

// farewell says why the session ends on this stream.
func (a *attachment) farewell() {
	a.mu.Lock()
	why := a.why
	a.mu.Unlock()
	if why != nil {
		a.send(why.Append(nil))
		return
	}
	a.send((&session.Fin{}).Append(nil))
}

// end has no more frames read, and why said when the outcome of those before is.
func (a *attachment) end(why *session.Error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.why == nil {
		a.why = why
	}
	a.close()
}

// leave has no more frames read, because the gateway stops or the connection is old enough: the session goes on on another one.
func (a *attachment) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.away = true
	a.close()
}

// close wakes who reads or holds a frame; a.mu is held.
func (a *attachment) close() {
	select {
	case <-a.ended:
	default:
		close(a.ended)
		a.str.SetReadDeadline(time.Unix(1, 0))
	}
}

func (a *attachment) leaving() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.away
}

// until sets when the next read has to be over.
func (a *attachment) until(t time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-a.ended:
	default:
		a.str.SetReadDeadline(t)
	}
}

// send writes frames. A client that does not take them ends the session: it has it gone on with elsewhere.
func (a *attachment) send(frames []byte) {
	a.out <- struct{}{}
	defer func() { <-a.out }()
	if a.mute || len(frames) == 0 {
		return
	}
	a.str.SetWriteDeadline(time.Now().Add(writeTimeout + time.Duration(len(frames))*time.Second/slowest))
	if _, err := a.str.Write(frames); err != nil {
		a.mute = true
		a.str.CancelWrite(0)
		a.end(nil)
	}
}

// shutdown says GOAWAY on every stream and returns when the outcome of all that was taken is said, or when ctx ends.
func (s *sessions) shutdown(ctx context.Context) error {
	s.stop() // so each of them leaves
	s.mu.Lock()
	var all []*attachment
	for a := range s.open {
		all = append(all, a)
	}
	s.mu.Unlock()
	for _, a := range all {
		select {
		case <-a.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
