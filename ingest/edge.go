package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/failpoint"
)

// edge is where fasthttp ends and core begins.
type edge struct {
	core *core
	log  *slog.Logger
	wait time.Duration // for the next byte of a body
	age  time.Duration // of a connection before it is closed behind an answer, 0: no limit

	cors  *cors                  // nil: nothing is said to browsers
	alt   atomic.Pointer[[]byte] // the value of Alt-Svc while HTTP/3 is spoken, else nil
	dates dates                  // of answers that are not fasthttp's

	handover handover
}

// verdictField carries what headerReceived found, which sees the header before any byte of the body but cannot answer,
// to handle: a refusal as JSON, or a ticket.
const verdictField = "Headgate-Verdict"

// headerReceived refuses what can be refused by the header alone. The request then looks as if it had no body and no
// Expect: handle is called at once, and neither asks for the body nor reads it.
func (e *edge) headerReceived(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	h.Del(verdictField) // a client's own
	var ticket [20]byte
	found, no := e.early(h)
	if no == nil {
		h.SetCanonical([]byte(verdictField), e.handover.leave(ticket[:0], found, h))
	} else {
		verdict, err := json.Marshal(no)
		if err != nil {
			panic("BUG: ingest: marshal a refusal: " + err.Error())
		}
		h.Set(verdictField, string(verdict))
		h.Del("Expect")
		if announced(h) != 0 || no.Problem.Code == event.AmbiguousFraming {
			h.SetConnectionClose()
		}
		h.SetContentLength(0)
	}
	// One byte of the body is read before handle runs, with this deadline; all others through body.
	return fasthttp.RequestConfig{ReadTimeout: e.wait, MaxRequestBodySize: 1}
}

// early returns what it found in a header, or why it is refused.
func (e *edge) early(h *fasthttp.RequestHeader) (found *head, no *refusal) {
	defer func() {
		if bug := recover(); bug != nil {
			no = e.panicked(bug)
		}
	}()
	found = heads.Get().(*head)
	if no = found.read(h); no == nil {
		no = e.core.examine(&found.plan, &found.request)
	}
	if no != nil {
		found.free(nil)
	}
	return found, no
}

// announced is the announced length of the body, -1 when it is chunked.
func announced(h *fasthttp.RequestHeader) int64 {
	if n := h.ContentLength(); n != -2 { // -2: no body
		return int64(n)
	}
	return 0
}

// read fills in the request but for its body and client.
func (h *head) read(from *fasthttp.RequestHeader) *refusal {
	no := h.parse(from.RawHeaders())
	h.request = request{method: from.Method(), target: originForm(from), fields: h.fields, length: announced(from)}
	switch version := from.Protocol(); {
	case no != nil, string(version) == "HTTP/1.1", string(version) == "HTTP/1.0":
		return no
	default:
		return refuse(event.BadFraming, "%s is not spoken here", version)
	}
}

// handle answers one request, whatever happens in it.
func (e *edge) handle(ctx context.Context, fast *fasthttp.RequestCtx) {
	start := time.Now()
	c := fast.Conn().(*conn)
	found, a := e.answer(ctx, fast, start)
	if e.isLast(c, &a, start) {
		fast.SetConnectionClose()
	}
	failpoint.Pass(failpoint.Answer)
	e.write(fast, c, &a)
	h := &fast.Request.Header
	if e.cors != nil {
		e.cors.mark(&fast.Response.Header, h.PeekAll("Origin"))
	}
	e.core.metrics.answered(originForm(h), h.Method(), a.status, time.Since(start))
	found.free(a.doc)
	c.requestDone()
}

func (e *edge) answer(ctx context.Context, fast *fasthttp.RequestCtx, start time.Time) (found *head, a answer) {
	defer func() {
		if bug := recover(); bug != nil {
			a = e.core.refused(e.panicked(bug), found.identity())
			a.close = true
			found = new(head) // somebody may still read the old one
		}
	}()
	found = e.found(&fast.Request.Header)
	if found.refused != nil && !e.asked(&found.request, found.refused, &a) {
		a = e.core.refused(found.refused, found.identity())
	}
	if found.refused != nil {
		a.close = fast.Request.Header.ConnectionClose()
		return found, a
	}
	c := fast.Conn().(*conn)
	if !c.bodyEnd.begin() {
		a = e.core.refused(refuse(event.AmbiguousFraming, "send the next request when the one with a chunked body is answered"), found.identity())
		a.close = true
		return found, a
	}
	r := &found.request
	r.client, r.addr, r.now, r.room = c.client, c.addr, start, found.room
	if stream := fast.RequestBodyStream(); stream != nil {
		found.body = body{conn: c, src: stream, want: r.length, now: start, until: start.Add(e.bodyTime(r.length)), pause: e.wait}
		r.body = &found.body
	}
	if found.of != nil {
		a = e.core.take(ctx, r, &found.plan)
	} else {
		a = e.core.serve(ctx, r)
	}
	a.close = a.close || found.body.odd
	return found, a
}

// asked answers the preflight of a browser, which is refused like any request that is no POST.
func (e *edge) asked(r *request, no *refusal, a *answer) bool {
	if e.cors == nil || no.Problem.Code != event.MethodNotAllowed && no.Problem.Code != event.Unauthorized {
		return false
	}
	found, refused, ok := e.cors.preflight(r)
	if refused != nil {
		found = e.core.refused(refused, identify(r.fields))
	}
	if ok {
		*a = found
	}
	return ok
}

// found returns what headerReceived left, or when that is lost what can be found again but for the plan.
func (e *edge) found(h *fasthttp.RequestHeader) *head {
	verdict := h.Peek(verdictField)
	ticket := len(verdict) > 0 && verdict[0] != '{'
	if ticket {
		if found := e.handover.fetch(verdict, h); found != nil {
			return found
		}
	}
	found := heads.Get().(*head)
	found.refused = found.read(h)
	if !ticket {
		found.refused = new(refusal)
		if err := json.Unmarshal(verdict, found.refused); err != nil {
			panic("BUG: ingest: read a refusal: " + err.Error())
		}
	}
	return found
}

// chunkedTime is how long a body of unknown length may take: what the default limit may.
const chunkedTime = 16 << 20

func (e *edge) bodyTime(length int64) time.Duration {
	if length < 0 {
		length = chunkedTime
	}
	return bodyTime(length)
}

// isLast reports whether the connection is closed behind an answer. Behind that of an old one there may be further requests.
func (e *edge) isLast(c *conn, a *answer, start time.Time) bool {
	if e.age > 0 && start.Sub(c.since) > e.age {
		c.linger.Store(true)
		return true
	}
	return a.close
}

// begin is called before an answer is written, which the connection owes memory for until it is sent.
func (e *edge) begin(c *conn, a *answer) {
	if a.close {
		c.linger.Store(true)
	}
	e.core.charge(a)
	c.owe(e.core.budget, a.owed)
	c.socket.answer()
}

// charge has the memory of a document paid for that has outgrown its room, if it is not yet.
func (c *core) charge(a *answer) {
	if len(a.doc) > mostRoom && a.owed == 0 {
		a.owed = int64(cap(a.doc))
		c.budget.Charge(a.owed)
	}
}

func (e *edge) write(fast *fasthttp.RequestCtx, c *conn, a *answer) {
	e.begin(c, a)
	fast.SetStatusCode(a.status)
	h := &fast.Response.Header
	h.SetContentType(a.mediaType)
	for _, f := range a.fields[:a.n] {
		h.SetCanonical([]byte(f.name), []byte(f.value))
	}
	if alt := e.alt.Load(); alt != nil && c.secure != nil {
		h.SetBytesV("Alt-Svc", *alt)
	}
	if len(a.doc) <= mostRoom {
		fast.SetBody(a.doc) // a copy, into memory that goes round
	} else {
		fast.Response.SetBodyRaw(a.doc)
	}
}

// panicked turns a panic into an answer: one request fails, the process lives.
func (e *edge) panicked(bug any) *refusal {
	e.log.Error("panic in a request", "panic", fmt.Sprint(bug), "stack", string(debug.Stack()))
	return refuse(event.Internal, "an error of the gateway, named in its log")
}

// failed answers what fasthttp could not read as a request; the connection is closed behind it.
func (e *edge) failed(fast *fasthttp.RequestCtx, err error) {
	c := fast.Conn().(*conn)
	if c.strange() {
		return
	}
	a := e.core.refused(headProblem(c, err), identity{})
	a.close = c.fault == nil
	e.write(fast, c, &a)
	if e.cors != nil {
		e.cors.markUnread(&fast.Response.Header)
	}
	e.core.metrics.answered(nil, nil, a.status, 0)
}

func headProblem(c *conn, err error) *refusal {
	var small *fasthttp.ErrSmallBuffer
	switch {
	case errors.As(err, &small):
		return refuse(event.HeadersTooLarge, "the header is larger than %d bytes", readBuffer)
	case errors.Is(c.fault, os.ErrDeadlineExceeded):
		return refuse(event.RequestTimeout, "the request came too slowly")
	case c.fault != nil:
		return refuse(event.IncompleteBody, "the request broke off")
	case errors.Is(err, fasthttp.ErrDuplicateContentLength), errors.Is(err, fasthttp.ErrUnsupportedTransferEncoding):
		return refuse(event.AmbiguousFraming, "the length of the body is not clear")
	}
	return refuse(event.BadFraming, "the header is not that of an HTTP/1.1 request")
}

// fastLog takes fasthttp's own log: mostly clients that went away, which is no error of ours.
type fastLog struct{ log *slog.Logger }

// Printf implements fasthttp.Logger.
func (l fastLog) Printf(format string, args ...any) {
	l.log.Debug("http connection", "detail", fmt.Sprintf(format, args...))
}
