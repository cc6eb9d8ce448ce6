package ingest

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/sdk/session"
)

// read takes frames until the client says FIN, which is nil, or until there is something wrong with one.
func (a *attachment) read() *session.Error {
	for {
		a.until(time.Now().Add(sessionIdle))
		if _, err := a.in.Peek(1); errors.Is(err, os.ErrDeadlineExceeded) {
			return &session.Error{Retryable: true, Code: session.SessionIdle, Detail: "nothing came for " + sessionIdle.String()}
		}
		a.until(time.Now().Add(a.of.wait))
		t, length, err := session.ReadHead(a.in)
		if err != nil {
			return unread(err)
		}
		switch t {
		case session.TypeEvents:
			if no := a.events(length); no != nil {
				return no
			}
		case session.TypeFin:
			return a.control(&session.Fin{}, length, nil)
		default:
			return &session.Error{Code: session.UnknownFrame, Detail: "a client sends EVENTS and FIN after HELLO"}
		}
	}
}

// events takes an EVENTS frame whose head was read.
func (a *attachment) events(length uint64) *session.Error {
	if length > uint64(a.limits.Body)+session.MostHead {
		return refusedAs(tooLarge(event.BodyTooLarge, "body", a.limits.Body, int64(min(length, 1<<62))))
	}
	if !a.spend(int64(length)) {
		return &session.Error{Code: session.CreditExceeded, Detail: "EVENTS came without credit"}
	}
	h, left, err := session.ReadEventsHead(a.in, length)
	if err != nil {
		return unread(err)
	}
	last, settledUpTo := h.First+h.Count-1, a.settledNow()
	switch {
	case h.Count == 0:
		return refusedAs(event.Problemf(event.BadFraming, "EVENTS without events"))
	case a.next > 0 && h.First != a.next, a.next == 0 && h.First <= settledUpTo && last > settledUpTo:
		return &session.Error{Code: session.BadSequence, Detail: "EVENTS must follow those before, and the first of a stream what WELCOME says is settled"}
	case last <= settledUpTo: // its outcome was said after HELLO
		if no := a.pass(left); no != nil {
			return no
		}
		a.send(a.grant(nil, int64(length)))
		return nil
	}
	by := time.Now().Add(bodyTime(int64(left)))
	if no := a.arriving(left, by); no != nil {
		return no
	}
	f, no := (&arrival{attachment: a, head: h, size: int64(length), left: int64(left), by: by}).carry()
	if no != nil {
		return no
	}
	a.next, a.last = last+1, last
	a.settles.Do(func() {
		a.flights = make(chan *flight, mostFlights)
		a.settling.Go(a.settle)
	})
	a.flights <- f
	if a.level == event.Accepted {
		a.of.follow(a.state, f)
	} else { // there, its outcome says it, at once
		a.send((&session.Ack{Level: session.Accepted, UpTo: a.last}).Append(nil))
	}
	return nil
}

// spend takes the credit for a frame, of which some must be left.
func (a *attachment) spend(n int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.credit <= 0 {
		return false
	}
	a.credit -= n
	return true
}

// pass reads bytes that are not wanted.
func (a *attachment) pass(n uint64) *session.Error {
	_, err := io.CopyN(io.Discard, &paced{a: a, left: int64(n), by: time.Now().Add(bodyTime(int64(n)))}, int64(n))
	return unread(err)
}

// paced reads the events of a frame. It ends in io.EOF behind the last byte; any other end is an error.
type paced struct {
	a    *attachment
	left int64
	by   time.Time // all must be there
}

// Read implements io.Reader.
func (r *paced) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	deadline := time.Now().Add(r.a.of.wait)
	if r.by.Before(deadline) {
		deadline = r.by
	}
	r.a.until(deadline)
	n, err := r.a.in.Read(p[:min(int64(len(p)), r.left)])
	if r.left -= int64(n); err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// arrival is the events of a frame until they are in the lanes.
type arrival struct {
	*attachment
	head session.EventsHead
	size int64     // of the frame's payload
	left int64     // of its events
	by   time.Time // they must all be there
	p    *plan     // it outlives us: the flight says its outcome by it
	r    request
	w    *work

	inflated, counted bool
}

// carry receives the events of a frame and brings them into the lanes, again until there is room for them: nothing of the
// session goes past them. There is no flight when the session ends before.
func (a *arrival) carry() (*flight, *session.Error) {
	c := a.of.core
	for a.r = a.request(a.left); ; a.r.now = time.Now() {
		a.p = new(plan)
		no := c.examine(a.p, &a.r)
		if no == nil {
			break
		}
		if stop, ended := a.refusal(no.Problem); ended {
			return nil, stop
		}
	}
	a.p.who = identify(a.r.fields)
	a.w = takeWork(c.budget, c.heavy)
	ours := true
	defer func() {
		if ours {
			a.w.give()
		}
	}()
	if no := a.receive(); no != nil {
		return nil, no
	}
	if no := a.p.read(a.head); no != nil {
		return nil, refusedAs(no)
	}
	for {
		no := a.decode()
		if no == nil {
			f := newFlight(a.head, a.size)
			if a.level == event.Accepted {
				f.safely = func() { a.of.safe(a.state, f) }
			}
			ours = false
			go f.fly(c, a.of.ctx, a.p, a.w)
			if <-f.entered; f.no == nil {
				return f, nil
			}
			ours, no = true, f.no
		}
		if stop, ended := a.refusal(no); ended {
			return nil, stop
		}
	}
}

// refusal deals with a batch that is not taken: it is held for a while when that can help, else the session ends.
func (a *attachment) refusal(no *event.Problem) (stop *session.Error, ended bool) {
	why := refusedAs(no)
	if !why.Retryable {
		return why, true
	}
	return why, !a.hold(no)
}

// receive reads the events as they were sent, whole. While memory is scarce it waits, and the client with it; not for long,
// since others may be waiting for what it holds.
func (a *arrival) receive() *session.Error {
	p, w := a.p, a.w
	src := &paced{a: a.attachment, left: a.left, by: a.by}
	for tries := 0; ; tries++ {
		var err error
		if w.body.slab == nil {
			w.body.coming = a.left
			err = w.body.open(min(a.left, untrusted))
		}
		if err == nil {
			err = w.body.fill(src, p.limits.Body)
		}
		switch {
		case err == nil:
			p.counters.wire.Add(float64(len(w.body.bytes())))
			return nil
		case err == errOverLimit:
			return refusedAs(tooLarge(event.BodyTooLarge, "body", p.limits.Body, p.limits.Body+1))
		case err != errOverBudget:
			return unread(err)
		}
		no := w.account.refused()
		if tries == mostHeld || no.Code != event.Overloaded || !a.hold(no) {
			return refusedAs(no)
		}
		src.by = time.Now().Add(bodyTime(a.left))
	}
}

// untrusted is what a frame gets before its bytes are there, whatever it announces: a session that stalls costs little more.
const untrusted = 1 << smallest

// mostHeld is how often a frame is held that has a part of the memory.
const mostHeld = 3

// read says how the events of a frame are read.
func (p *plan) read(h session.EventsHead) *event.Problem {
	switch h.Framing {
	case session.Opaque:
		p.framing = prefixed
	case session.Lines:
		p.framing = lines
	case session.JSON:
		p.framing = prefixedJSON
	default:
		return event.Problemf(event.UnsupportedMediaType, "there is no framing %d", h.Framing)
	}
	if h.Coding > session.Coding(allCodings) {
		return event.Problemf(event.UnsupportedCoding, "there is no coding %d", h.Coding)
	}
	if h.Coding != session.Identity {
		order := [...]coding{gzipCoding, deflateCoding, zstdCoding, brotliCoding, snappyCoding}
		p.codings.applied[0], p.codings.n = order[h.Coding-1], 1
	}
	return nil
}

// decode makes a batch of what was received. It may be called again.
func (a *arrival) decode() *event.Problem {
	c, p, w, now := a.of.core, a.p, a.w, time.Now()
	p.received, w.account.until = now, now.Add(c.timeout)
	if !a.inflated {
		if no := c.inflate(p, w); no != nil {
			return no
		}
		a.inflated = true
	}
	b := &w.batch
	b.Body, b.Headers = nil, nil // of the attempt before: they are not its own
	b.Reset()
	b.DecodedBefore = a.counted
	no := w.decode(&a.r, p)
	if no == nil && uint64(len(b.Events)) != a.head.Count {
		no = event.Problemf(event.BadFraming, "EVENTS announces %d events and has %d", a.head.Count, len(b.Events))
	}
	if no == nil && !a.counted {
		no = c.count(p, &a.r, Load{Events: len(b.Events)})
		a.counted = no == nil
	}
	if no != nil {
		return no
	}
	c.describe(p, b, &a.r, time.Now())
	b.Session, b.First = a.state.key.name, a.head.First
	p.itself(b, a.producer)
	return nil
}

// holdTime is how long a frame is held that was refused with such a wait: others that were refused in the same moment must
// not all try again in the same moment.
func holdTime(wait time.Duration) time.Duration {
	const least, most = 100 * time.Millisecond, 30 * time.Second
	if wait == 0 {
		return least + rand.N(900*time.Millisecond)
	}
	wait = min(max(wait, least), most)
	return wait + rand.N(wait/4)
}
