package ingest

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/sdk/session"
)

// Sessions at the level accepted take events in DATAGRAM frames (RFC 9221), too. Nothing is answered to these events; what of
// them cannot be taken at once is dropped and counted.

// A connection's datagrams that wait; more are dropped. They are paid from the memory budget.
const (
	mostDatagrams = 64
	datagramCost  = 64              // bytes, beside what it has
	datagramTime  = 1 * time.Second // in which one must get into the lanes
)

// What becomes of datagrams.
const (
	datagramTaken     = "taken"     // its events have the results that headgate_ingest_events_total says
	datagramRefused   = "refused"   // as a request would be
	datagramDropped   = "dropped"   // too many wait, or there is no memory
	datagramUnknown   = "unknown"   // its stream is no session at the level accepted
	datagramMalformed = "malformed" // it is not what the protocol says
)

func newDatagramCounters() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "headgate_quic_datagrams_total",
		Help: "DATAGRAM frames of headgate/1 by what became of them."}, []string{"result"})
}

// know takes events for a session from datagrams; forget does not any more.
func (sc *sessionConn) know(a *attachment) {
	sc.mu.Lock()
	if sc.known == nil {
		sc.known = map[uint64]*attachment{}
	}
	sc.known[sc.place(a)] = a
	first := !sc.heard
	sc.heard = true
	sc.mu.Unlock()
	if first {
		sc.of.quiet.leave(sc) // which waits for ignore, and that for mu
		sc.listening.Go(sc.listen)
		sc.mu.Lock()
		defer sc.mu.Unlock()
		sc.expect()
	}
}

// ignore implements unheard: no session takes any.
func (sc *sessionConn) ignore() {
	sc.further()
	for d := receiveNow(sc.conn); d != nil; d = receiveNow(sc.conn) {
		if _, _, _, ok := parseDatagram(d); ok {
			sc.count(datagramUnknown)
		} else {
			sc.count(datagramMalformed)
		}
	}
}

func (sc *sessionConn) forget(a *attachment) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if place := sc.place(a); sc.known[place] == a {
		delete(sc.known, place)
	}
}

func (sc *sessionConn) find(place uint64) *attachment {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return sc.known[place]
}

// listen reads datagrams until the connection ends. It waits for nothing else, so that what is lost is counted.
func (sc *sessionConn) listen() {
	var taking sync.WaitGroup
	defer taking.Wait()
	for {
		d, err := sc.conn.ReceiveDatagram(sc.conn.Context())
		if err != nil {
			break
		}
		if sc.queue == nil {
			sc.queue, sc.plan = make(chan []byte, mostDatagrams), new(plan)
			taking.Go(sc.take)
		}
		sc.enqueue(d)
	}
	if sc.queue != nil {
		close(sc.queue)
	}
}

func (sc *sessionConn) enqueue(d []byte) {
	size := int64(len(d) + datagramCost)
	if !sc.of.core.budget.Reserve(size) {
		sc.count(datagramDropped)
		return
	}
	select {
	case sc.queue <- d:
	default:
		sc.of.core.budget.Release(size)
		sc.count(datagramDropped)
	}
}

func (sc *sessionConn) count(result string) { sc.of.datagrams.WithLabelValues(result).Inc() }

// take takes one datagram after the other.
func (sc *sessionConn) take() {
	for d := range sc.queue {
		sc.count(sc.one(d))
		sc.of.core.budget.Release(int64(len(d) + datagramCost))
	}
}

// one takes the events of one datagram, whatever happens in it.
func (sc *sessionConn) one(d []byte) (result string) {
	c := sc.of.core
	defer func() {
		if bug := recover(); bug != nil {
			c.log.Error("panic in a datagram", "panic", fmt.Sprint(bug), "stack", string(debug.Stack()))
			result = datagramRefused
		}
	}()
	place, framing, events, ok := parseDatagram(d)
	if !ok {
		return datagramMalformed
	}
	a := sc.find(place)
	if a == nil {
		return datagramUnknown
	}
	if no := sc.store(a, session.EventsHead{Framing: framing}, events); no != nil {
		sc.plan.counters.refused(no.Code, 1)
		return datagramRefused
	}
	return datagramTaken
}

// parseDatagram divides one. It must have some bytes of events.
func parseDatagram(d []byte) (place uint64, framing session.Framing, events []byte, ok bool) {
	place, n := binary.Uvarint(d)
	if n <= 0 {
		return 0, 0, nil, false
	}
	f, k := binary.Uvarint(d[n:])
	return place, session.Framing(f), d[n+max(k, 0):], k > 0 && n+k < len(d)
}

// store takes events as a request of the session would, but for an answer. It is refused what a request would be.
func (sc *sessionConn) store(a *attachment, h session.EventsHead, events []byte) *event.Problem {
	c, p := sc.of.core, sc.plan
	counters := a.counters
	*p = plan{counters: counters}
	r := a.request(int64(len(events)))
	if no := c.examine(p, &r); no != nil {
		if p.counters == nil {
			p.counters = counters
		}
		return no.Problem
	}
	if p.ack != event.Accepted {
		return event.Problemf(event.BadParameter, "the stream's events are not accepted in datagrams any more")
	}
	if no := p.read(h); no != nil {
		return no
	}
	p.who = identify(r.fields)
	w := takeWork(c.budget, c.heavy)
	done := false
	defer func() {
		if !done { // a panic: the rest is left to the garbage collector, somebody may still read it
			w.account.close()
		}
	}()
	no := c.storeDatagram(sc.of.ctx, &r, p, w, events)
	done = true
	w.give()
	return no
}

// storeDatagram takes the events of a datagram that has been examined to their outcome.
func (c *core) storeDatagram(ctx context.Context, r *request, p *plan, w *work, events []byte) *event.Problem {
	b, now := &w.batch, time.Now()
	if err := w.body.open(int64(len(events))); err != nil {
		return w.account.refused()
	}
	w.body.slab.b = append(w.body.slab.b, events...)
	p.counters.wire.Add(float64(len(events)))
	p.counters.inflated.Add(float64(len(events)))
	p.received, w.account.until = now, now.Add(min(c.timeout, datagramTime))
	no := w.decode(r, p)
	if no == nil {
		no = c.count(p, r, Load{Events: len(b.Events)})
	}
	if no != nil {
		return no
	}
	c.describe(p, b, r, now)
	if n := b.Counts(); n.Rejected < len(b.Events) {
		if no = c.accept(ctx, p.stream, b, w.account.until); no != nil {
			return no
		}
		c.name(p)
	}
	p.counters.batch(b)
	return nil
}
