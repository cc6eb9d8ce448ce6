package ingest

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/quic-go/quic-go"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/sdk/session"
)

// visit is a connection that speaks headgate/1, with its sessions that take events in DATAGRAM frames (RFC 9221): those at
// the level accepted. Nothing is answered to these events; what of them cannot be taken at once is dropped and counted.
type visit struct {
	of      *sessions
	conn    carrier
	others  int            // sessions of the connection that are not of this visit
	alone   bool           // it has one session, whose stream the client has no number of
	streams sync.WaitGroup // sessions

	accepting context.Context // ends when no further sessions are taken, and those that there are go elsewhere
	over      func()          // to be called at the end

	mu    sync.Mutex // guards known and here
	known map[uint64]*attachment
	here  int         // sessions that are on a stream, or want to be
	idle  *time.Timer // runs while there are none

	listening sync.WaitGroup // who reads datagrams, from when heard is set
	heard     bool           // guarded by mu

	queue chan []byte // datagrams that wait; nil before the first
	plan  *plan       // of the one that is taken now
}

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

// visitIdle is how long a connection may have no session.
const visitIdle = time.Minute

// carrier is what a visit comes over. Its context is that of the visit.
type carrier interface {
	Context() context.Context
	RemoteAddr() net.Addr
	ReceiveDatagram(ctx context.Context) ([]byte, error)
}

// newVisit returns one that leave ends when it has had no session for long.
func newVisit(s *sessions, conn carrier, leave func()) *visit {
	v := &visit{of: s, conn: conn}
	v.over = v.live()
	v.idle = time.AfterFunc(visitIdle, leave)
	return v
}

// place is how datagrams name a session.
func (v *visit) place(a *attachment) uint64 {
	if v.alone {
		return 0
	}
	return session.Place(int64(a.str.StreamID()))
}

// serve runs a session on a stream.
func (v *visit) serve(str *quic.Stream) {
	room := v.of.enter(v.move(1) + v.others)
	defer v.of.leave()
	defer v.move(-1)
	if !room {
		v.turnAway(str)
		return
	}
	v.of.serve(v, str)
}

// move counts sessions, and returns how many there are.
func (v *visit) move(n int) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.here += n; v.here == 0 {
		v.idle.Reset(visitIdle)
	} else {
		v.idle.Stop()
	}
	return v.here
}

// know takes events for a session from datagrams; forget does not any more.
func (v *visit) know(a *attachment) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known == nil {
		v.known = map[uint64]*attachment{}
	}
	v.known[v.place(a)] = a
	if !v.heard {
		v.heard = true
		v.of.quiet.leave(v)
		v.listening.Go(v.listen)
	}
}

// ignore implements unheard: no session takes any.
func (v *visit) ignore() {
	for d := receiveNow(v.conn); d != nil; d = receiveNow(v.conn) {
		if _, _, _, ok := parseDatagram(d); ok {
			v.count(datagramUnknown)
		} else {
			v.count(datagramMalformed)
		}
	}
}

func (v *visit) forget(a *attachment) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if place := v.place(a); v.known[place] == a {
		delete(v.known, place)
	}
}

func (v *visit) find(place uint64) *attachment {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.known[place]
}

// listen reads datagrams until the connection ends. It waits for nothing else, so that what is lost is counted.
func (v *visit) listen() {
	var taking sync.WaitGroup
	defer taking.Wait()
	for {
		d, err := v.conn.ReceiveDatagram(v.conn.Context())
		if err != nil {
			break
		}
		if v.queue == nil {
			v.queue, v.plan = make(chan []byte, mostDatagrams), new(plan)
			taking.Go(v.take)
		}
		v.enqueue(d)
	}
	if v.queue != nil {
		close(v.queue)
	}
}

func (v *visit) enqueue(d []byte) {
	size := int64(len(d) + datagramCost)
	if !v.of.core.budget.Reserve(size) {
		v.count(datagramDropped)
		return
	}
	select {
	case v.queue <- d:
	default:
		v.of.core.budget.Release(size)
		v.count(datagramDropped)
	}
}

func (v *visit) count(result string) { v.of.datagrams.WithLabelValues(result).Inc() }

// take takes one datagram after the other.
func (v *visit) take() {
	for d := range v.queue {
		v.count(v.one(d))
		v.of.core.budget.Release(int64(len(d) + datagramCost))
	}
}

// one takes the events of one datagram, whatever happens in it.
func (v *visit) one(d []byte) (result string) {
	c := v.of.core
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
	a := v.find(place)
	if a == nil {
		return datagramUnknown
	}
	if no := v.store(a, session.EventsHead{Framing: framing}, events); no != nil {
		v.plan.counters.refused(no.Code, 1)
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
func (v *visit) store(a *attachment, h session.EventsHead, events []byte) *event.Problem {
	c, p := v.of.core, v.plan
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
	no := c.fire(v.of.ctx, &shot{p, w, &r, events})
	done = true
	w.give()
	return no
}

// shot is the events of a datagram on their way.
type shot struct {
	p      *plan
	w      *work
	r      *request
	events []byte
}

func (c *core) fire(ctx context.Context, s *shot) *event.Problem {
	p, w, b, now := s.p, s.w, &s.w.batch, time.Now()
	if err := w.body.open(int64(len(s.events))); err != nil {
		return w.account.refused()
	}
	w.body.slab.b = append(w.body.slab.b, s.events...)
	p.counters.wire.Add(float64(len(s.events)))
	p.counters.inflated.Add(float64(len(s.events)))
	p.received, w.account.until = now, now.Add(min(c.timeout, datagramTime))
	b.Headers, b.Body, p.account = s.r.fields, w.body.bytes(), &w.account
	no := decode(b, p)
	w.account.rest()
	if no == nil {
		no = c.count(p, s.r, Load{Events: len(b.Events)})
	}
	if no != nil {
		return no
	}
	p.describe(b, s.r, now)
	b.Owner = uint64(c.owner(p, s.r))
	if n := b.Counts(); n.Rejected < len(b.Events) {
		if no = c.accept(ctx, p.stream, b, w.account.until); no != nil {
			return no
		}
		c.name(p)
	}
	n := b.Counts()
	p.counters.count(n)
	p.counters.errors(b.Errors, n.Rejected)
	return nil
}
