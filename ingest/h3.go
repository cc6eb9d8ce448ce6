package ingest

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
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
	raw      *sessions // for pages that speak WebTransport

	mu    sync.Mutex // guards what follows
	conns map[*h3Conn]struct{}
}

// mostH3Header bounds a header, as decoded; above readBuffer it is refused with an answer that says so, above this with
// the bare status.
const mostH3Header = 4 * readBuffer

func newH3(requests context.Context, e *edge, cfg *Config, raw *sessions) *h3 {
	h := &h3{edge: e, requests: requests, raw: raw, conns: map[*h3Conn]struct{}{}}
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
	found, a := h.answer3(w, from, start)
	if h.cors != nil {
		h.cors.markHTTP(w.Header(), from.Header["Origin"])
	}
	h.write3(w, &a)
	h.core.metrics.answered([]byte(from.RequestURI), []byte(from.Method), a.status, time.Since(start))
	found.free(a.doc)
}

func (h *h3) answer3(w http.ResponseWriter, from *http.Request, start time.Time) (found *head, a answer) {
	defer func() {
		if bug := recover(); bug != nil {
			a = h.core.refused(h.panicked(bug), found.identity())
			found = new(head) // somebody may still read the old one
		}
	}()
	found = heads.Get().(*head)
	no := found.read3(from)
	r := &found.request
	r.now, r.room = start, found.room
	if peer, err := netip.ParseAddrPort(from.RemoteAddr); err == nil {
		r.addr = peer.Addr().Unmap()
		r.client = r.addr.AppendTo(nil)
	}
	r.body = &body3{control: http.NewResponseController(w), src: from.Body, until: start.Add(h.bodyTime(r.length)), pause: h.wait}
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
	h.fields = h.fields[:0]
	size := len(from.RequestURI)
	for _, name := range slices.Sorted(maps.Keys(from.Header)) {
		lower := appendLower(make([]byte, 0, len(name)), []byte(name))
		for _, value := range from.Header[name] {
			h.fields = append(h.fields, event.Attr{Name: lower, Value: trim([]byte(value))})
			size += len(name) + len(value)
		}
	}
	h.fields = append(h.fields, event.Attr{Name: []byte("host"), Value: []byte(from.Host)})
	h.request = request{method: []byte(from.Method), target: []byte(from.RequestURI), fields: h.fields, length: from.ContentLength}
	switch {
	case size > readBuffer:
		return refuse(event.HeadersTooLarge, "the header is larger than %d bytes", readBuffer)
	case len(h.fields) > maxFields:
		return refuse(event.HeadersTooLarge, "more than %d header fields", maxFields)
	}
	return nil
}

func (h *h3) write3(w http.ResponseWriter, a *answer) {
	fields := w.Header()
	for _, f := range a.fields[:a.n] {
		fields[f.name] = append(fields[f.name], f.value)
	}
	if a.mediaType != "" {
		fields["Content-Type"] = []string{a.mediaType}
	}
	if a.status != http.StatusNoContent {
		fields["Content-Length"] = []string{strconv.Itoa(len(a.doc))}
	}
	h.core.charge(a)
	defer h.core.budget.Release(a.owed)
	control := http.NewResponseController(w)
	control.SetWriteDeadline(time.Now().Add(writeTimeout + time.Duration(len(a.doc))*time.Second/slowest))
	w.WriteHeader(a.status)
	w.Write(a.doc) // a client that is gone needs no answer
}

// body3 reads the body of one HTTP/3 request. io.EOF means that it is whole: the stream has ended, and not before as many
// bytes as were announced.
type body3 struct {
	control *http.ResponseController
	src     io.Reader
	until   time.Time     // the body must be there
	pause   time.Duration // longest wait for the next byte
	got     int64
}

// Read implements io.Reader; errors are *event.Problem.
func (b *body3) Read(p []byte) (int, error) {
	deadline := time.Now().Add(b.pause)
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
