package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/headgate-io/headgate/sdk/session"
)

// Datagrams sends events that may be lost, in DATAGRAM frames: the gateway says nothing of them, they have no order, and none
// is sent again. The stream must allow the level Accepted. Its methods may be called concurrently.
type Datagrams struct {
	c    *Client // which has no events of its own
	end  context.CancelFunc
	done chan struct{}

	mu     sync.Mutex // guards the rest
	now    *link      // nil: there is no connection
	failed error      // for good
}

// ErrNoConnection is the error of Datagrams.Send while there is no connection: the events are not sent.
var ErrNoConnection = errors.New("client: there is no connection to the gateway now")

// TooLargeError says that events do not fit into one datagram on the way to this gateway.
type TooLargeError struct{ Size, Most int } // bytes

// Error implements error.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("client: the events need a datagram of %d bytes, %d is the most", e.Size, e.Most)
}

// NewDatagrams returns what keeps a connection for datagrams until Close. HTTP, Level, First and InFlight have no meaning.
func NewDatagrams(cfg Config) (*Datagrams, error) {
	if cfg.Address == "" {
		return nil, errors.New("client: datagrams need the address of the UDP listener")
	}
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	cfg.HTTP, cfg.Level = "", session.Accepted
	d := &Datagrams{c: &Client{cfg: cfg, loss: true, changed: make(chan struct{})}, done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	d.end = cancel
	go func() { defer close(d.done); d.run(ctx) }()
	return d, nil
}

// Send sends events in one datagram. nil says that they are on their way, not that they arrive or are taken. An error says
// that they are not sent: ErrNoConnection, a *TooLargeError, or why the gateway takes none from this client.
func (d *Datagrams) Send(events ...[]byte) error {
	if len(events) == 0 {
		return errors.New("client: a datagram has at least one event")
	}
	d.mu.Lock()
	l, err := d.now, d.failed
	d.mu.Unlock()
	if err != nil {
		return err
	}
	if l == nil {
		return ErrNoConnection
	}
	b, err := newBatch(d.c.cfg.Framing, events)
	if err != nil {
		return err
	}
	payload := append(session.AppendDatagramHead(nil, int64(l.str.StreamID()), d.c.cfg.Framing), b.body...)
	err = l.conn.SendDatagram(payload)
	if large, ok := errors.AsType[*quic.DatagramTooLargeError](err); ok {
		return &TooLargeError{len(payload), int(large.MaxDatagramPayloadSize)}
	}
	if err != nil {
		return fmt.Errorf("%w: %v", ErrNoConnection, err)
	}
	return nil
}

// Ready returns when datagrams can be sent, or when ctx ends, or never can.
func (d *Datagrams) Ready(ctx context.Context) error {
	return d.c.wait(ctx, func() bool { return d.c.over != "" }, func() error { return nil })
}

// Close ends the connection; what was sent last may be lost with it.
func (d *Datagrams) Close() {
	d.end()
	<-d.done
}

// run keeps a connection.
func (d *Datagrams) run(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		began := time.Now()
		err := d.connect(ctx)
		if r, ok := errors.AsType[*refusal](err); ok && !r.retryable {
			d.mu.Lock()
			d.failed = err
			d.mu.Unlock()
			d.c.fail(err)
			return
		}
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > longest {
			n = 0
		}
		d.c.cfg.Notice("connection", err.Error())
		timer := time.NewTimer(backoff(n, rand.Float64()))
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// connect has a session on a connection until that ends.
func (d *Datagrams) connect(ctx context.Context) error {
	l, err := d.c.dial(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	stop := context.AfterFunc(ctx, func() { l.conn.CloseWithError(0, "") })
	defer stop()
	if err := l.open(); err != nil {
		return err
	}
	if !l.conn.ConnectionState().SupportsDatagrams.Remote {
		return &refusal{code: "datagrams", detail: "this gateway takes no datagrams"}
	}
	d.set(l)
	defer d.set(nil)
	for {
		f, err := l.next()
		if err != nil {
			return err
		}
		switch f.(type) {
		case *session.GoAway, *session.Fin:
			return errAway
		}
	}
}

func (d *Datagrams) set(l *link) {
	d.mu.Lock()
	d.now = l
	d.mu.Unlock()
	over := ""
	if l != nil {
		over = "quic"
	}
	d.c.setOver(over)
}
