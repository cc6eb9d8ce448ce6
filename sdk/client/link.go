package client

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/headgate-io/headgate/sdk/session"
)

// link is the session on a stream of one connection.
type link struct {
	c    *Client
	pc   net.PacketConn
	tr   *quic.Transport
	conn *quic.Conn
	str  *quic.Stream
	in   *bufio.Reader

	wrote   atomic.Uint64 // frames, of HELLO and EVENTS
	blocked atomic.Bool   // it was ended since UDP does not come through any more

	level   session.Level
	settled uint64 // as WELCOME said

	mu     sync.Mutex // guards the rest
	more   chan struct{}
	credit int64
	away   bool // nothing more is to be sent
}

// dial connects and opens the session. It takes no longer than dialTime, unless the gateway answers.
func (c *Client) dial(ctx context.Context) (*link, error) {
	host, _, err := net.SplitHostPort(c.cfg.Address)
	if err != nil {
		return nil, &refusal{code: "address", detail: err.Error()}
	}
	to, err := net.ResolveUDPAddr("udp", c.cfg.Address)
	if err != nil {
		return nil, err
	}
	l := &link{c: c, more: make(chan struct{}, 1)}
	if l.pc, err = c.cfg.Listen(); err != nil {
		return nil, fmt.Errorf("open a UDP socket: %w", err)
	}
	l.tr = &quic.Transport{Conn: l.pc}
	secure := &tls.Config{}
	if c.cfg.TLS != nil {
		secure = c.cfg.TLS.Clone()
	}
	secure.MinVersion, secure.NextProtos = tls.VersionTLS13, []string{session.Protocol}
	if secure.ServerName == "" {
		secure.ServerName = host
	}
	soon, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	l.conn, err = l.tr.Dial(soon, to, secure, &quic.Config{KeepAlivePeriod: 10 * time.Second, MaxIdleTimeout: 30 * time.Second, HandshakeIdleTimeout: dialTime, EnableDatagrams: c.loss})
	if err == nil {
		l.str, err = l.conn.OpenStreamSync(soon)
	}
	if err != nil {
		l.close()
		return nil, fmt.Errorf("cannot reach the gateway at %s (UDP): %w", c.cfg.Address, err)
	}
	l.in = bufio.NewReader(l.str)
	return l, nil
}

func (l *link) close() {
	if l.conn != nil {
		l.conn.CloseWithError(0, "")
	}
	l.tr.Close()
	l.pc.Close()
}

// run sends and hears outcomes until the connection ends.
func (l *link) run(ctx context.Context) error {
	defer l.close()
	stop := context.AfterFunc(ctx, func() { l.conn.CloseWithError(0, "") })
	defer stop()
	if l.c.cfg.HTTP != "" { // there is another way
		watching := make(chan struct{})
		go func() { defer close(watching); l.watch(l.conn.Context()) }()
		defer func() { l.conn.CloseWithError(0, ""); <-watching }()
	}
	if err := l.serve(); !l.blocked.Load() {
		return err
	}
	return errBlocked
}

// serve is the session, from HELLO to its end.
func (l *link) serve() error {
	if err := l.open(); err != nil {
		return err
	}
	l.c.setOver("quic")
	writing, cancel := context.WithCancel(l.conn.Context())
	wrote := make(chan struct{})
	go func() { defer close(wrote); l.write(writing) }()
	err := l.read()
	cancel()
	l.str.CancelWrite(0)
	<-wrote
	return err
}

// open says HELLO and hears WELCOME, which may come late: when what was taken before has its outcome.
func (l *link) open() error {
	cfg := &l.c.cfg
	l.c.again()
	hello := session.Hello{Version: session.Version, Stream: cfg.Stream, Session: cfg.Session, Token: cfg.Token, Source: cfg.Source, Level: cfg.Level,
		Acked: l.c.settled(), Fields: cfg.Fields}
	if _, err := l.str.Write(hello.Append(nil)); err != nil {
		return err
	}
	l.wrote.Add(1)
	f, err := l.next()
	if err != nil {
		return err
	}
	w, ok := f.(*session.Welcome)
	if !ok {
		return fmt.Errorf("the gateway answers HELLO with %T", f)
	}
	l.level, l.settled, l.credit = w.Level, w.Settled, int64(w.Credit)
	if told := l.c.told; w.Settled < told {
		cfg.Notice(session.EventsLost, fmt.Sprintf("the gateway has acknowledged the events up to %d and stands for those up to %d: what is between may be lost", told, w.Settled))
		l.c.told = w.Settled
	}
	return nil
}

// next reads a frame. ERROR is an error.
func (l *link) next() (session.Frame, error) {
	t, length, err := session.ReadHead(l.in)
	if err != nil {
		return nil, err
	}
	payload, err := session.ReadControl(l.in, length, nil)
	if err != nil {
		return nil, err
	}
	var f session.Frame
	switch t {
	case session.TypeWelcome:
		f = &session.Welcome{}
	case session.TypeAck:
		f = &session.Ack{}
	case session.TypeResult:
		f = &session.Result{}
	case session.TypeReject:
		f = &session.Reject{}
	case session.TypeCredit:
		f = &session.Credit{}
	case session.TypeSlowDown:
		f = &session.SlowDown{}
	case session.TypeGoAway:
		f = &session.GoAway{}
	case session.TypeError:
		f = &session.Error{}
	case session.TypeFin:
		f = &session.Fin{}
	default:
		return nil, fmt.Errorf("the gateway sends a frame of type %d", t)
	}
	if err := f.Parse(payload); err != nil {
		return nil, err
	}
	if e, ok := f.(*session.Error); ok {
		return nil, &refusal{code: e.Code, detail: e.Detail, retryable: e.Retryable}
	}
	return f, nil
}

// read hears outcomes. nil: the session ended as it should.
func (l *link) read() error {
	for {
		f, err := l.next()
		switch {
		case err == io.EOF && l.leaving():
			return errAway
		case err != nil:
			return err
		}
		switch f := f.(type) {
		case *session.Reject:
			l.c.rejected(f)
		case *session.Result:
			l.result(f)
		case *session.Ack:
			l.ack(f)
		case *session.Credit:
			l.add(int64(f.Bytes), false)
		case *session.SlowDown:
			l.c.cfg.Notice(f.Code, f.Detail)
		case *session.GoAway:
			l.add(0, true)
		case *session.Fin:
			if l.leaving() || !l.c.isClosed() {
				return errAway
			}
			return nil
		default:
			return fmt.Errorf("the gateway sends %T", f)
		}
	}
}

func (l *link) result(f *session.Result) {
	b := l.c.find(f.First)
	if b == nil || b.First != f.First || b.Count != f.Count {
		return // settled before
	}
	b.result = Result{Accepted: int(f.Accepted), Filtered: int(f.Filtered), Rejected: int(f.Rejected), Duplicates: int(f.Duplicates),
		DeadLettered: int(f.DeadLettered), Level: f.Level, Rejects: b.rejects}
	b.known = true
}

// ack settles what has its result and has come as far as that says. The watermark of delivered stays behind what came to durable
// only, and the results that follow say for themselves that they are delivered.
func (l *link) ack(f *session.Ack) {
	before := l.c.settled()
	defer func() {
		if now := l.c.settled(); now > before {
			l.c.told = now
		}
	}()
	l.c.settle(f.UpTo, func(b *Batch) bool {
		level := b.result.Level
		if !b.known { // its result is forgotten
			if level = l.level; b.last() > l.settled {
				return false
			}
		}
		return f.Level >= min(level, session.Durable)
	})
}

func (l *link) add(credit int64, away bool) {
	l.mu.Lock()
	l.credit += credit
	l.away = l.away || away
	l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
}

func (l *link) leaving() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.away
}

// write sends what is behind WELCOME, as far as there is credit, and FIN when the client is closed and all is sent.
func (l *link) write(ctx context.Context) {
	sent := l.settled
	for {
		b, err := l.c.after(ctx, sent)
		if errors.Is(err, ErrClosed) {
			l.str.Write((&session.Fin{}).Append(nil))
			l.str.Close()
			return
		}
		if err != nil || !l.allowed(ctx, len(b.body)) {
			return
		}
		h := session.EventsHead{First: b.First, Count: b.Count, Framing: l.c.cfg.Framing}
		if _, err = l.str.Write(session.AppendEventsHead(nil, h, len(b.body))); err == nil {
			_, err = l.str.Write(b.body)
		}
		if err != nil {
			return // which read learns, too
		}
		l.wrote.Add(1)
		sent = b.last()
	}
}

// allowed waits for credit and takes it; false: nothing more is to be sent.
func (l *link) allowed(ctx context.Context, size int) bool {
	for {
		l.mu.Lock()
		away, credit := l.away, l.credit
		if !away && credit > 0 {
			l.credit -= int64(size) + session.MostHead // more than it is: never less than the gateway counts
		}
		l.mu.Unlock()
		if away {
			return false
		}
		if credit > 0 {
			return true
		}
		select {
		case <-l.more:
		case <-ctx.Done():
			return false
		}
	}
}

// after waits for the batch behind a sequence. ErrClosed: there is none, and none will come.
func (c *Client) after(ctx context.Context, seq uint64) (b *Batch, err error) {
	err = c.wait(ctx, func() bool {
		b = nil
		if i := c.place(seq + 1); i < len(c.queue) {
			b = c.queue[i]
		}
		return b != nil || c.closed
	}, func() error {
		if b == nil {
			return ErrClosed
		}
		return nil
	})
	return b, err
}
