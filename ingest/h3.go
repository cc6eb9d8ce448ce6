package ingest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/headgate-io/headgate/event"
)

// h3 is where HTTP/3 ends and core begins.
type h3 struct {
	*edge
	requests context.Context // in which requests run
	server   *http3.Server
	sessions *sessions // for pages that speak WebTransport

	mu    sync.Mutex // guards what follows
	conns map[*h3Conn]struct{}
}

// mostH3Header bounds a header, as decoded; above readBuffer it is refused with an answer that says so, above this with
// the bare status.
const mostH3Header = 4 * readBuffer

func newH3(requests context.Context, e *edge, cfg *Config, s *sessions) *h3 {
	h := &h3{edge: e, requests: requests, sessions: s, conns: map[*h3Conn]struct{}{}}
	h.server = &http3.Server{Handler: h, MaxHeaderBytes: mostH3Header, IdleTimeout: cfg.IdleTimeout, Logger: discard, ConnContext: h.attach}
	if e.cors != nil {
		h.server.EnableDatagrams, h.server.AdditionalSettings = true, webtransportSettings()
	}
	return h
}

// ServeHTTP answers one request.
func (h *h3) ServeHTTP(w http.ResponseWriter, from *http.Request) {
	deepen(0)
	start := time.Now()
	c, _ := from.Context().Value(h3ConnKey{}).(*h3Conn)
	c.begin()
	defer c.end(h.server.IdleTimeout)
	if asksForWebTransport(from) {
		h.webtransport(w, from, c)
		return
	}
	found, a := h.answer3(w, from, c, start)
	h.write3(w, from, &a)
	h.core.metrics.answered(found.request.target, found.request.method, a.status, time.Since(start))
	found.free(a.doc)
}

func (h *h3) answer3(w http.ResponseWriter, from *http.Request, c *h3Conn, start time.Time) (found *head, a answer) {
	defer func() {
		if bug := recover(); bug != nil {
			a = h.core.refused(h.panicked(bug), found.identity())
			found = new(head) // somebody may still read the old one
			found.request.method, found.request.target = []byte(from.Method), []byte(from.RequestURI)
		}
	}()
	found = heads.Get().(*head)
	no := found.read3(from)
	r := &found.request
	r.now, r.room = start, found.room
	r.client, r.addr = c.client(from.RemoteAddr)
	found.body3 = body3{control: w.(readDeadliner), src: from.Body, now: start, until: start.Add(h.bodyTime(r.length)), pause: h.wait}
	r.body = &found.body3
	if no == nil {
		no = h.core.examine(&found.plan, r)
	}
	if no == nil {
		return found, h.core.take(h.requests, r, &found.plan)
	}
	if !h.asked(r, no, &a) {
		a = h.core.refused(no, found.identity())
	}
	return found, a
}

// read3 fills in the request but for its body and client. HTTP/3 has the length of a message in its frames, and no fields
// that could say otherwise (RFC 9114 sections 4.1, 4.2).
func (h *head) read3(from *http.Request) *refusal {
	h.text, h.fields = h.text[:0], h.fields[:0]
	h.request = request{method: h.keep(from.Method), target: h.keep(from.RequestURI), length: from.ContentLength}
	size := len(from.RequestURI)
	for name, values := range from.Header { // in any order
		lower := h.keep(name)
		lower = appendLower(lower[:0], lower)
		for _, value := range values {
			h.fields = append(h.fields, event.Attr{Name: lower, Value: trim(h.keep(value))})
			size += len(name) + len(value)
		}
	}
	slices.SortStableFunc(h.fields, func(a, b event.Attr) int { return bytes.Compare(a.Name, b.Name) })
	h.fields = append(h.fields, event.Attr{Name: h.keep("host"), Value: h.keep(from.Host)})
	h.request.fields = h.fields
	switch {
	case size > readBuffer:
		return refuse(event.HeadersTooLarge, "the header is larger than %d bytes", readBuffer)
	case len(h.fields) > maxFields:
		return refuse(event.HeadersTooLarge, "more than %d header fields", maxFields)
	}
	return nil
}

// keep copies a part of the request to memory of the head.
func (h *head) keep(part string) []byte {
	before := len(h.text)
	h.text = append(h.text, part...)
	return h.text[before:len(h.text):len(h.text)]
}

// body3 reads the body of one HTTP/3 request. io.EOF means that it is whole: the stream has ended, and not before as many
// bytes as were announced.
type body3 struct {
	control readDeadliner
	src     io.Reader
	now     time.Time
	until   time.Time     // the body must be there
	pause   time.Duration // longest wait for the next byte
	got     int64
}

// readDeadliner is what http3 writes an answer to, and the stream that its body comes on.
type readDeadliner interface {
	SetReadDeadline(until time.Time) error
}

// Read implements io.Reader; errors are *event.Problem.
func (b *body3) Read(p []byte) (int, error) {
	if b.got > 0 {
		b.now = time.Now()
	}
	deadline := b.now.Add(b.pause)
	if b.until.Before(deadline) {
		deadline = b.until
	}
	b.control.SetReadDeadline(deadline)
	n, err := b.src.Read(p)
	b.got += int64(n)
	switch {
	case err == nil, err == io.EOF:
		return n, err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return n, event.Problemf(event.RequestTimeout, "the body came too slowly; nothing of it is stored")
	}
	return n, event.Problemf(event.IncompleteBody, "the body broke off after %d bytes; nothing of it is stored", b.got)
}

// datagramError is H3_DATAGRAM_ERROR (RFC 9297 section 5.2).
const datagramError = 0x33

// ignore implements unheard: it closes a connection on which one comes. Without WebTransport no request has any.
func (c *h3Conn) ignore() {
	if receiveNow(c) != nil {
		c.CloseWithError(datagramError, "datagrams were not agreed on")
	}
}

// handle serves the requests of one connection.
func (h *h3) handle(conn *quic.Conn) {
	h.server.ServeQUICConn(conn) // an error: the client is gone, or we stop
	conn.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "")
}
