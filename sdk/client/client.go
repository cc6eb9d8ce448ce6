// Package client sends events to a Headgate in order: over QUIC in a session that outlives connections, or over HTTP where
// UDP does not come through. What is sent and not acknowledged is sent again, and stored once.
package client

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/headgate-io/headgate/sdk/session"
)

// Config says where to and how; the zero value of all but Address and Stream means the default.
type Config struct {
	Address string          // HOST:PORT of the gateway's UDP listener
	Stream  string          // Headgate stream
	HTTP    string          // base URL to send to when UDP does not come through, like https://HOST:8443; empty: UDP alone
	Token   string          // bearer token
	Source  string          // the producer's name; empty: the token's, or the address
	Level   session.Level   // how far events must have come; the stream's default
	Framing session.Framing // what the events are: Opaque, or Lines and JSON for JSON, of which Lines have no newline
	Fields  []session.Field // header fields that count for all events, such as Headgate-Key
	TLS     *tls.Config     // trust; the system's
	Session string          // name of the session, to go on with an earlier one; a new one

	// First is the sequence of the first event: behind the last one that is known to be settled of an earlier session; 1.
	First    uint64
	InFlight int // bytes of events that are not settled, above which Send waits; 4 MiB

	// Listen opens the socket that the client sends from, anew for each connection; a UDP socket at any port.
	Listen func() (net.PacketConn, error)
	// Notice is told why events wait: a gateway that holds them, a lost connection; and, as events_lost, which events the gateway
	// does not stand for any more, though they were acknowledged. It must be quick, and may be nil.
	Notice func(code, detail string)
}

// Client is a session. Its methods may be called concurrently; events are in the order of the calls of Send.
type Client struct {
	cfg  Config
	loss bool // events may be lost: datagrams are used
	http *http.Client
	turn time.Time // until when events go over HTTP, and UDP is not tried; used by run
	told uint64    // the last that was settled over QUIC, which the session knows; used by run
	end  context.CancelFunc
	done chan struct{} // closed when run has ended

	mu      sync.Mutex    // guards the rest
	changed chan struct{} // closed, and replaced, whenever something here changes
	next    uint64        // sequence of the next event
	acked   uint64        // of the last one that is settled
	queue   []*Batch      // what is not settled, in order
	bytes   int           // in queue
	closed  bool          // nothing more is sent
	failed  error         // for good
	over    string        // what events go over now: "quic", "http", or nothing
}

// ErrClosed is the error of a Send after Close.
var ErrClosed = errors.New("the client is closed")

// UnsettledError says that a client ended with events of which it is not known whether they are stored.
type UnsettledError struct {
	Events int
	Err    error // why; may be nil
}

// Error implements error.
func (e *UnsettledError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("%d events were not acknowledged in time", e.Events)
	}
	return fmt.Sprintf("%d events were not acknowledged: %v", e.Events, e.Err)
}

// Unwrap implements errors.
func (e *UnsettledError) Unwrap() error { return e.Err }

// New returns a client. It connects when there are events, and again whenever that is needed.
func New(cfg Config) (*Client, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &Client{cfg: cfg, end: cancel, done: make(chan struct{}), changed: make(chan struct{}), next: cfg.First, acked: cfg.First - 1}
	c.http = &http.Client{Timeout: answerTime, Transport: &http.Transport{TLSClientConfig: cfg.TLS, MaxConnsPerHost: 1, ForceAttemptHTTP2: false, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	go func() { defer close(c.done); c.run(ctx) }()
	return c, nil
}

// complete fills in the defaults.
func (cfg *Config) complete() error {
	if cfg.Address == "" && cfg.HTTP == "" || cfg.Stream == "" {
		return errors.New("client: an address and a stream are needed")
	}
	if cfg.Session == "" {
		cfg.Session = rand.Text()
	}
	cfg.First, cfg.InFlight = max(cfg.First, 1), max(cfg.InFlight, 0)
	if cfg.InFlight == 0 {
		cfg.InFlight = 4 << 20
	}
	if cfg.Listen == nil {
		cfg.Listen = func() (net.PacketConn, error) { return net.ListenUDP("udp", nil) }
	}
	if cfg.Notice == nil {
		cfg.Notice = func(string, string) {}
	}
	return nil
}

// Session is the name of the session, and Over what events go over now: quic, http, or nothing while there is no connection.
func (c *Client) Session() string { return c.cfg.Session }

// Over is what events go over now: quic, http, or nothing while there is no connection.
func (c *Client) Over() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over
}

// Send hands over a batch: events that are taken together or not at all, of which the gateway allows 16 MiB and 100,000.
// They are copied. It waits while too many are not settled; ctx ends that wait. The Batch says what becomes of them.
func (c *Client) Send(ctx context.Context, events ...[]byte) (*Batch, error) {
	if len(events) == 0 || uint64(len(events)) > math.MaxUint32 {
		return nil, errors.New("client: a batch has at least one event")
	}
	b, err := newBatch(c.cfg.Framing, events)
	if err != nil {
		return nil, err
	}
	err = c.wait(ctx, func() bool { return c.closed || len(c.queue) == 0 || c.bytes+len(b.body) <= c.cfg.InFlight }, func() error {
		if c.closed {
			return ErrClosed
		}
		b.First, c.next = c.next, c.next+b.Count
		c.queue = append(c.queue, b)
		c.bytes += len(b.body)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return b, nil
}

// Flush returns when everything that was sent before is settled.
func (c *Client) Flush(ctx context.Context) error {
	c.mu.Lock()
	upTo := c.next
	c.mu.Unlock()
	return c.wait(ctx, func() bool { return len(c.queue) == 0 || c.queue[0].First >= upTo }, func() error { return nil })
}

// Close takes no more events and returns when all are settled. When ctx ends first, or the session failed, the error is an
// *UnsettledError: then it is not known of those whether they are stored. It may be called twice.
func (c *Client) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	c.tell()
	c.mu.Unlock()
	err := c.Flush(ctx)
	if err == nil { // the gateway is told that the session ends, if that does not take long
		soon, cancel := context.WithTimeout(ctx, goodbye)
		defer cancel()
		select {
		case <-c.done:
		case <-soon.Done():
		}
	}
	c.end()
	<-c.done
	c.http.CloseIdleConnections()
	c.mu.Lock()
	defer c.mu.Unlock()
	left := 0
	for _, b := range c.queue {
		left += int(b.Count)
		b.settle(Result{}, &UnsettledError{int(b.Count), c.failed})
	}
	c.queue, c.bytes = nil, 0
	if left > 0 {
		return &UnsettledError{left, errors.Join(c.failed, err)}
	}
	return nil
}

const goodbye = time.Second

// tell wakes all who wait; c.mu is held.
func (c *Client) tell() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// wait waits until ready, then does something, both with c.mu held, and tells. A session that has failed ends it.
func (c *Client) wait(ctx context.Context, ready func() bool, do func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !ready() && c.failed == nil {
		changed := c.changed
		c.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			c.mu.Lock()
			return ctx.Err()
		}
		c.mu.Lock()
	}
	if c.failed != nil {
		return c.failed
	}
	err := do()
	c.tell()
	return err
}

// fail ends the session for good.
func (c *Client) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = err
	for _, b := range c.queue {
		b.settle(Result{}, &UnsettledError{int(b.Count), err})
	}
	c.tell()
}

func (c *Client) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// settle ends the batches up to a sequence that have their result. Of those that have none it is only known that they are
// settled.
func (c *Client) settle(upTo uint64, over func(*Batch) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, b := range c.queue {
		if b.last() > upTo || !over(b) {
			break
		}
		c.bytes -= len(b.body)
		c.acked = b.last()
		b.settle(b.result, nil)
		n++
	}
	c.queue = c.queue[n:]
	c.tell()
}
