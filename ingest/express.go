package ingest

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/internal/failpoint"
)

// express is the way of small and plain requests past fasthttp, which costs more than all that is done with one event: one
// read, the core, one write. It takes a request whose text is there whole and alone, and to the letter what clients
// usually send (express_head.go); everything else, and what is refused by its header, goes to fasthttp from the first byte on,
// as if nobody had looked at it. So there is one opinion on where a request ends that is not plain, and one place that refuses.
type express struct {
	edge     *edge
	ctx      context.Context // requests run under it
	idle     time.Duration   // between requests
	stopping atomic.Bool
}

// run answers requests until there is one that is not for it, whose bytes are then in c.express.exchange, or the connection ends. It is
// called at the beginning of a request.
func (x *express) run(c *conn) error {
	if c.express.raw != nil {
		c.express.ended = nil
		if err := c.socket.await(c.express.raw, c.express.onReadable); err != nil {
			return err
		}
		return c.express.ended
	}
	for {
		r := smallExchanges.Get().(*smallExchange)
		n, err := c.socket.Read(r.in[:])
		if n == 0 {
			smallExchanges.Put(r)
			return err
		}
		c.express.exchange, r.n = r, n
		if over, err := x.next(c); over {
			return err
		}
	}
}

// next answers the request in c.express.exchange, and reports whether it is the last one for express, and why.
func (x *express) next(c *conn) (over bool, err error) {
	c.express.exchange.handed = 0
	if c.silent.Load() {
		c.silent.Store(false)
	}
	if was := c.express.state.Load(); was == stateClosed || !c.express.state.CompareAndSwap(was, stateActive) {
		c.releaseExchange(nil)
		return true, net.ErrClosed
	}
	start := time.Now()
	a, ok := x.answer(c, start)
	if !ok {
		if !c.express.state.CompareAndSwap(stateActive, stateFasthttp) {
			c.releaseExchange(nil)
			return true, c.end()
		}
		return true, nil
	}
	last, err := x.write(c, &a, start)
	c.releaseExchange(a.doc)
	if err != nil || last || !c.express.state.CompareAndSwap(stateActive, stateIdle) || x.stopping.Load() {
		return true, c.end()
	}
	return false, nil
}

// answer takes the request in c.express.exchange to its answer; ok is false when it is not for us.
func (x *express) answer(c *conn, start time.Time) (a answer, ok bool) {
	e, found := x.edge, &c.express.exchange.head
	defer func() {
		if bug := recover(); bug != nil {
			a, ok = e.core.refused(e.panicked(bug), found.identity()), true
			a.close, c.express.exchange.panicked = true, true
		}
	}()
	if x.stopping.Load() || !c.express.exchange.parse() || e.cors != nil && value(found.fields, "origin") != nil {
		return a, false
	}
	r := &found.request
	r.client, r.addr, r.now, r.room, r.body, r.whole = c.client, c.addr, start, found.room, &c.express.exchange.body, true
	if e.core.examine(&found.plan, r) != nil {
		found.plan = plan{}
		return a, false
	}
	c.bodyEnd.begin()
	return e.core.take(x.ctx, r, &found.plan), true
}

// write sends the answer, and makes it the last one where it has to be.
func (x *express) write(c *conn, a *answer, start time.Time) (last bool, err error) {
	e, r := x.edge, c.express.exchange
	last = e.isLast(c, a, start) || x.stopping.Load() || c.express.state.Load() == stateClosing
	failpoint.Pass(failpoint.Answer)
	e.begin(c, a)
	now := time.Now()
	r.out = x.compose(r.out[:0], a, now, last)
	e.core.metrics.posted(a.status, now.Sub(start))
	_, err = c.socket.Write(r.out)
	c.settle()
	c.socket.readBy = now.Add(x.idle)
	c.socket.hurry() // answerReady waits on without a new await, which would
	return last, err
}

// stop has every connection that waits for a next request closed, and every other behind its answer.
func (x *express) stop(open *roster) {
	x.stopping.Store(true)
	for _, c := range open.those(func(c *conn) bool { return c.express.state.Load() == stateIdle }) {
		c.Close()
	}
}
