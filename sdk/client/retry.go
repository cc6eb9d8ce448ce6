package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"sort"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/headgate-io/headgate/sdk/session"
)

const (
	firstWait  = 100 * time.Millisecond
	longest    = 10 * time.Second
	dialTime   = 2 * time.Second // for a handshake, then UDP is taken to be blocked
	answerTime = 60 * time.Second
	httpTurn   = time.Minute // over HTTP, then UDP is tried again
)

// backoff is how long to wait before attempt n, from 0: exponential, with full jitter behind the cap, so that clients which
// failed in the same moment do not come back in the same moment. The first has to wait, too.
func backoff(n int, random float64) time.Duration {
	ceiling := longest
	if n < 16 {
		ceiling = min(longest, firstWait<<n)
	}
	return time.Duration(random * float64(ceiling))
}

// refusal is an answer that says why.
type refusal struct {
	code, detail string
	retryable    bool
	after        time.Duration
}

// Error implements error.
func (r *refusal) Error() string { return r.code + ": " + r.detail }

// errAway ends a connection that is to be followed by another one.
var errAway = errors.New("the session goes on on another connection")

// run sends what is in the queue until Close.
func (c *Client) run(ctx context.Context) {
	for n := 0; ; n++ {
		if c.idle(ctx) != nil {
			return
		}
		before := c.settled()
		err := c.connect(ctx)
		c.setOver("")
		if ctx.Err() != nil {
			return
		}
		if r, ok := errors.AsType[*refusal](err); ok && !r.retryable {
			c.fail(err)
			return
		}
		if err == nil {
			n = -1
			continue
		}
		if c.settled() > before {
			n = 0
		}
		c.cfg.Notice("connection", err.Error())
		wait := backoff(n, rand.Float64())
		if r, ok := errors.AsType[*refusal](err); ok {
			wait += r.after
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// idle waits for something to send; an error says that nothing comes any more.
func (c *Client) idle(ctx context.Context) error {
	err := c.wait(ctx, func() bool { return len(c.queue) > 0 || c.closed }, func() error {
		if len(c.queue) == 0 {
			return ErrClosed
		}
		return nil
	})
	return err
}

func (c *Client) settled() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.acked
}

func (c *Client) setOver(over string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = over
	c.tell()
}

// connect sends over one connection until that ends: over QUIC, or where nothing answers there, over HTTP, for a while.
func (c *Client) connect(ctx context.Context) error {
	if !time.Now().Before(c.turn) {
		if ended, err := c.overQUIC(ctx); ended {
			return err
		}
		c.turn = time.Now().Add(httpTurn)
	}
	turn, cancel := context.WithDeadline(ctx, c.turn)
	defer cancel()
	err := c.post(ctx, turn)
	if _, answered := errors.AsType[*refusal](err); !answered { // else HTTP comes through, and what it is for has not changed
		c.turn = time.Time{}
	}
	return err
}

// overQUIC reports whether there is nothing else than what it did.
func (c *Client) overQUIC(ctx context.Context) (ended bool, err error) {
	if c.cfg.Address == "" {
		return false, nil
	}
	l, err := c.dial(ctx)
	if err == nil {
		err = l.run(ctx)
		if !errors.Is(err, errBlocked) {
			return true, err
		}
	}
	if c.cfg.HTTP == "" || ctx.Err() != nil {
		if tls, ok := errors.AsType[*quic.TransportError](err); ok && tls.ErrorCode.IsCryptoError() {
			return true, &refusal{code: "tls", detail: err.Error()}
		}
		return true, err
	}
	c.cfg.Notice("udp", err.Error()+"; sending over HTTP")
	return false, nil
}

// rejected notes a REJECT.
func (c *Client) rejected(r *session.Reject) {
	if b := c.find(r.Seq); b != nil {
		b.rejects = append(b.rejects, Reject{int(r.Seq - b.First), r.Code, r.Detail, r.Retryable})
	}
}

// find returns the batch that a sequence belongs to, nil for none.
func (c *Client) find(seq uint64) *Batch {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := c.place(seq); i < len(c.queue) && c.queue[i].First <= seq {
		return c.queue[i]
	}
	return nil
}

// place is where in the queue the batch is that ends at or behind a sequence; c.mu is held.
func (c *Client) place(seq uint64) int {
	return sort.Search(len(c.queue), func(i int) bool { return c.queue[i].last() >= seq })
}

// again forgets what was heard of batches without a result: it is said again.
func (c *Client) again() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range c.queue {
		if !b.known {
			b.rejects = nil
		}
	}
}
