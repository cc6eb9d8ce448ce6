package ingest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/problem"
	"github.com/headgate-io/headgate/internal/requestid"
	"github.com/headgate-io/headgate/sdk/session"
)

// hello takes the first frame, and says welcome.
func (a *attachment) hello(ctx context.Context) *session.Error {
	a.until(time.Now().Add(a.of.wait))
	stop := context.AfterFunc(a.conn.accepting, func() { a.str.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	t, length, err := session.ReadHead(a.in)
	if err == nil && t != session.TypeHello {
		return &session.Error{Code: session.UnknownFrame, Detail: "a session begins with HELLO"}
	}
	var h session.Hello
	if no := a.control(&h, length, err); no != nil {
		if a.conn.accepting.Err() != nil {
			return elsewhere()
		}
		return no
	}
	if h.Version != session.Version {
		return &session.Error{Code: session.UnsupportedVersion, Detail: "this gateway speaks version 1 of " + session.Protocol}
	}
	var no *session.Error
	aside(func() { no = a.begin(ctx, &h) })
	return no
}

// begin makes the session that HELLO asks for.
func (a *attachment) begin(ctx context.Context, h *session.Hello) *session.Error {
	var p plan
	if no := a.introduce(&p, h); no != nil {
		return refusedAs(no)
	}
	a.name, a.caller, a.level, a.limits = p.name, bytes.Clone(p.caller), p.ack, p.limits
	a.counters = p.counters
	if h.Session == "" {
		h.Session = requestid.New(time.Now())
	}
	a.producer = []byte(h.Session)
	var err error
	if a.state, err = a.of.attach(ctx, sessionKey{string(a.caller), a.name, h.Session}, a); err != nil {
		return &session.Error{Retryable: true, Code: string(event.Draining), Detail: "the connection has ended"}
	}
	if a.level == event.Accepted {
		a.conn.know(a)
	} else if no := a.raise(ctx); no != nil {
		return no
	}
	a.welcome(h)
	a.conn.further() // of streams that are opened together, the second has mostly come by now
	return nil
}

// welcome says what the client may send, and the outcomes that it has missed.
func (a *attachment) welcome(h *session.Hello) {
	a.window = wholeCredit
	if b := a.of.core.budget; b.Held() > b.Limit()/2 {
		a.window = leastCredit
	}
	a.credit = a.window
	missed, settledUpTo := a.of.missed(nil, a.state, h.Acked)
	w := session.Welcome{Session: h.Session, Settled: settledUpTo, Credit: uint64(a.credit), Level: session.Level(a.level),
		MostFrame: uint64(a.limits.Body), MostEvent: uint64(a.limits.Event), MostCount: uint64(a.limits.Events), Idle: uint64(sessionIdle.Milliseconds())}
	frames := append(w.Append(nil), missed...)
	a.send(a.appendDurable(a.appendAck(frames, h.Acked, settledUpTo, a.deliveredNow())))
}

// control reads the payload of a frame whose head was read, perhaps with err.
func (a *attachment) control(f session.Frame, length uint64, err error) *session.Error {
	var payload []byte
	if err == nil {
		payload, err = session.ReadControl(a.in, length, nil)
	}
	if err == nil {
		err = f.Parse(payload)
	}
	return unread(err)
}

// unread says why a frame could not be read, nil when it could.
func unread(err error) *session.Error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &session.Error{Retryable: true, Code: string(event.RequestTimeout), Detail: "a frame came too slowly"}
	case err == io.EOF, errors.Is(err, io.ErrUnexpectedEOF):
		return &session.Error{Retryable: true, Code: string(event.IncompleteBody), Detail: "the stream ended without FIN, or inside a frame"}
	case errors.Is(err, session.ErrTooLong), errors.Is(err, session.ErrMalformed), errors.Is(err, session.ErrTruncated):
		return &session.Error{Code: string(event.BadFraming), Detail: err.Error()}
	}
	return &session.Error{Retryable: true, Code: string(event.IncompleteBody), Detail: "the stream broke off"} // and nobody hears it
}

// refusedAs is a problem as it is said in a session.
func refusedAs(no *event.Problem) *session.Error {
	kind, _ := problem.Of(no.Code)
	return &session.Error{Retryable: kind.Retryable, Code: string(no.Code), Detail: no.Detail}
}

// taken are the header fields that HELLO, EVENTS or nobody says.
func taken(name string) bool {
	switch name {
	case "authorization", "content-type", "content-encoding", "content-length", "headgate-ack", "headgate-source", "headgate-session", "idempotency-key", "origin", "expect", "transfer-encoding":
		return true
	}
	return strings.HasPrefix(name, "ce-")
}

// introduce makes of HELLO the header that every batch of the session has, and examines it.
func (a *attachment) introduce(p *plan, h *session.Hello) *event.Problem {
	a.target = []byte("/v1/streams/" + h.Stream + "/events")
	if h.Level > session.Delivered {
		return event.Problemf(event.BadParameter, "there is no level %d", h.Level)
	}
	if h.Level != session.Unset {
		a.target = append(append(a.target, "?ack="...), event.Level(h.Level).String()...)
	}
	if len(h.Session) > session.MostName || !printable([]byte(h.Session)) || strings.ContainsAny(h.Stream, "/?") {
		return event.Problemf(event.BadParameter, "a session is called by at most %d printable characters without blanks, and a stream has no / or ? in its name", session.MostName)
	}
	a.fields = append(a.fields, event.Attr{Name: []byte("content-type"), Value: []byte("application/x-ndjson")})
	add := func(name, value string) {
		if value != "" {
			a.fields = append(a.fields, event.Attr{Name: []byte(name), Value: []byte(value)})
		}
	}
	if h.Token != "" {
		add("authorization", "Bearer "+h.Token)
	}
	add("headgate-source", h.Source)
	for _, f := range h.Fields {
		name := strings.ToLower(f.Name)
		if taken(name) || strings.ContainsAny(f.Name+f.Value, "\r\n\x00") {
			return event.Problemf(event.BadParameter, "%q is no field of a session", name)
		}
		a.fields = append(a.fields, event.Attr{Name: []byte(name), Value: []byte(f.Value)})
	}
	r := a.request(0)
	if no := a.of.core.examine(p, &r); no != nil {
		a.of.core.metrics.stream(no.Stream).refused(no.Problem.Code, 1)
		return no.Problem
	}
	return nil
}

// request is a batch of so many bytes as the core sees it.
func (a *attachment) request(length int64) request {
	return request{method: []byte("POST"), target: a.target, fields: a.fields, length: length, client: a.client, addr: a.addr, now: time.Now()}
}
