package ingest

import (
	"context"
	"io"
	"net"
	"sync"
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
	date     atomic.Pointer[dateLine]
}

// ride is the memory of one request.
type ride struct {
	in   [readBuffer]byte
	n    int // bytes that were read
	from int // those of them that fasthttp has got, when it gets them
	head head
	out  []byte
	body given
	lost bool // somebody may still use it after a panic
}

var rides = sync.Pool{New: func() any { return new(ride) }}

// give gives the memory back; doc is the document of the answer, which keeps its room.
func (r *ride) give(doc []byte) {
	if r.lost {
		return
	}
	r.head.clear(doc)
	r.body.rest = nil
	if cap(r.out) > 2*mostRoom {
		r.out = nil
	}
	rides.Put(r)
}

// given is a body that is there.
type given struct{ rest []byte }

// Read implements io.Reader.
func (w *given) Read(p []byte) (n int, err error) {
	n = copy(p, w.rest)
	if w.rest = w.rest[n:]; len(w.rest) == 0 {
		err = io.EOF
	}
	return n, err
}

// Who has the connection, so that nobody closes it before an answer that is being made.
const (
	withFasthttp = iota // or it was not used yet
	waiting             // for a next request
	answering
	leaving // and it is to be closed behind the answer
	shut
)

// run answers requests until there is one that is not for it, whose bytes are then in c.ride, or the connection ends. It is
// called at the beginning of a request.
func (x *express) run(c *conn) error {
	if c.raw != nil {
		c.ended = nil
		if err := c.socket.await(c.raw, c.ready); err != nil {
			return err
		}
		return c.ended
	}
	for {
		r := rides.Get().(*ride)
		n, err := c.socket.Read(r.in[:])
		if n == 0 {
			rides.Put(r)
			return err
		}
		c.ride, r.n = r, n
		if over, err := x.next(c); over {
			return err
		}
	}
}

// next answers the request in c.ride, and reports whether it is the last one for express, and why.
func (x *express) next(c *conn) (over bool, err error) {
	c.ride.from = 0
	if c.silent.Load() {
		c.silent.Store(false)
	}
	if was := c.turn.Load(); was == shut || !c.turn.CompareAndSwap(was, answering) {
		c.alight(nil)
		return true, net.ErrClosed
	}
	start := time.Now()
	a, ok := x.answer(c, start)
	if !ok {
		if !c.turn.CompareAndSwap(answering, withFasthttp) {
			c.alight(nil)
			return true, c.end()
		}
		return true, nil
	}
	last, err := x.write(c, &a, start)
	c.alight(a.doc)
	if err != nil || last || !c.turn.CompareAndSwap(answering, waiting) || x.stopping.Load() {
		return true, c.end()
	}
	return false, nil
}

// alight gives back the memory of the last request.
func (c *conn) alight(doc []byte) {
	c.ride.give(doc)
	c.ride = nil
}

// end has fasthttp close the connection.
func (c *conn) end() error {
	c.turn.Store(withFasthttp)
	return net.ErrClosed
}

// handOn copies to p what express has read and not taken.
func (c *conn) handOn(p []byte) int {
	r := c.ride
	n := copy(p, r.in[r.from:r.n])
	if r.from += n; r.from == r.n {
		c.alight(nil)
	}
	return n
}

// answer takes the request in c.ride to its answer; ok is false when it is not for us.
func (x *express) answer(c *conn, start time.Time) (a answer, ok bool) {
	e, found := x.edge, &c.ride.head
	defer func() {
		if bug := recover(); bug != nil {
			a, ok = e.core.refused(e.panicked(bug), found.identity()), true
			a.close, c.ride.lost = true, true
		}
	}()
	if x.stopping.Load() || !c.ride.read() || e.cors != nil && value(found.fields, "origin") != nil {
		return a, false
	}
	r := &found.request
	r.client, r.addr, r.now, r.room, r.body, r.whole = c.client, c.addr, start, found.room, &c.ride.body, true
	if e.core.examine(&found.plan, r) != nil {
		found.plan = plan{}
		return a, false
	}
	c.tail.begin()
	return e.core.take(x.ctx, r, &found.plan), true
}

// write sends the answer, and makes it the last one where it has to be.
func (x *express) write(c *conn, a *answer, start time.Time) (last bool, err error) {
	e, r := x.edge, c.ride
	last = e.isLast(c, a, start) || x.stopping.Load() || c.turn.Load() == leaving
	failpoint.Pass(failpoint.Answer)
	e.begin(c, a)
	now := time.Now()
	r.out = x.compose(r.out[:0], a, now, last)
	e.core.metrics.posted(a.status, now.Sub(start))
	_, err = c.socket.Write(r.out)
	c.settle()
	c.socket.readBy = now.Add(x.idle)
	return last, err
}

// stop has every connection that waits for a next request closed, and every other behind its answer.
func (x *express) stop(open *roster) {
	x.stopping.Store(true)
	for _, c := range open.those(func(c *conn) bool { return c.turn.Load() == waiting }) {
		c.Close()
	}
}
