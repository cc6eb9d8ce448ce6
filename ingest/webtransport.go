package ingest

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/quicvarint"

	"github.com/headgate-io/headgate/event"
)

// A page in a browser has a session of headgate/1 in WebTransport (draft-ietf-webtrans-http3): an extended CONNECT on a
// connection of HTTP/3, beside whose stream the gateway opens the one on which the session is. That it is not the client who
// opens it leaves all streams that clients open to HTTP/3: http3.Server accepts them itself, else it could not say GOAWAY.

// webtransportPath is what a page connects to. HELLO says the rest, so that no token gets into a URL.
const webtransportPath = "/v1/session"

// What of the draft's registries (section 9) is needed.
const (
	webtransportStream = 0x41       // WT_STREAM, in front of a stream that belongs to a session
	webtransportClose  = 0x2843     // the capsule WT_CLOSE_SESSION
	webtransportGone   = 0x170d7b68 // WT_SESSION_GONE, of streams whose session has ended
)

// mostCapsules bounds what a client says beside its session, which is when that ends.
const mostCapsules = 64 << 10

// webtransportSettings say that it is spoken, to clients of each draft that browsers have.
func webtransportSettings() map[uint64]uint64 {
	return map[uint64]uint64{
		0x2b603742: 1, // SETTINGS_ENABLE_WEBTRANSPORT, up to draft 6
		0xc671706a: 1, // SETTINGS_WEBTRANSPORT_MAX_SESSIONS, draft 7 to 12
		0x14e9cd29: 1, // SETTINGS_WT_MAX_SESSIONS, draft 13 and 14
		0x2c7cf000: 1, // SETTINGS_WT_ENABLED, from draft 15
	}
}

// asksForWebTransport tells its requests from others; before draft 15 they were called otherwise.
func asksForWebTransport(from *http.Request) bool {
	return from.Method == http.MethodConnect && (from.Proto == "webtransport" || from.Proto == "webtransport-h3")
}

// webtransport has a session with a client that asks for one, until that has ended.
func (h *h3) webtransport(w http.ResponseWriter, from *http.Request, c *h3Conn) {
	start := time.Now()
	t, no := h.tunnel(w, from, c)
	if no != nil {
		a := h.core.refused(no, identity{})
		h.write3(w, from, &a)
		h.core.metrics.answered([]byte(from.RequestURI), []byte(from.Method), a.status, time.Since(start))
		return
	}
	h.core.metrics.answered([]byte(from.RequestURI), []byte(from.Method), http.StatusOK, time.Since(start))
	defer t.close()
	go t.hear()
	sc := newSessionConn(h.sessions, t, t.end)
	defer sc.over()
	sc.alone, sc.others = true, int(c.tunnels.Add(1))-1
	defer c.tunnels.Add(-1)
	sc.heard = true
	sc.listening.Go(sc.listen)
	if _, err := t.str.Write(quicvarint.Append(quicvarint.Append(nil, webtransportStream), uint64(t.StreamID()))); err == nil {
		sc.serve(t.str)
	}
	select { // the client reads what was written, and closes
	case <-t.ctx.Done():
	case <-sc.accepting.Done():
		rest := time.NewTimer(settled)
		defer rest.Stop()
		select {
		case <-t.ctx.Done():
		case <-rest.C:
		}
	}
	t.end()
	sc.idle.Stop()
	sc.listening.Wait()
}

// tunnel opens what a session is carried by.
func (h *h3) tunnel(w http.ResponseWriter, from *http.Request, c *h3Conn) (*tunnel, *refusal) {
	origin := from.Header["Origin"]
	switch {
	case h.cors == nil || from.URL.Path != webtransportPath:
		return nil, refuse(event.NotFound, "WebTransport is spoken at %s, where http.cors.origins lists an origin", webtransportPath)
	case len(origin) > 1 || len(origin) == 1 && !h.cors.origins[origin[0]]:
		return nil, refuse(event.Forbidden, "the origin %q is not among http.cors.origins", origin)
	case h.sessions.accepting.Err() != nil:
		return nil, refuse(event.Draining, "this gateway stops")
	}
	ctx, cancel := context.WithTimeout(from.Context(), h.wait)
	defer cancel()
	client := w.(http3.Settingser)
	select {
	case <-client.ReceivedSettings():
	case <-ctx.Done():
		return nil, refuse(event.RequestTimeout, "the client's SETTINGS have not come")
	}
	if !client.Settings().EnableDatagrams {
		return nil, refuse(event.BadParameter, "WebTransport needs SETTINGS_H3_DATAGRAM")
	}
	str, err := c.OpenStreamSync(ctx)
	if err != nil {
		return nil, refuse(event.RequestTimeout, "the client lets the gateway open no stream: %v", err)
	}
	h.sessions.quiet.leave(c) // HTTP/3 reads datagrams from now on
	w.WriteHeader(http.StatusOK)
	connect, err := w.(http3.HTTPStreamer).HTTPStream()
	if err != nil { // the client is gone
		str.CancelRead(webtransportGone)
		str.CancelWrite(webtransportGone)
		return nil, refuse(event.IncompleteBody, "the stream broke off")
	}
	t := &tunnel{Stream: connect, h3Conn: c, str: str}
	t.ctx, t.end = context.WithCancel(from.Context())
	context.AfterFunc(t.ctx, func() {
		str.CancelWrite(webtransportGone) // without effect where the session has ended it; first, so that it says nothing more
		str.CancelRead(webtransportGone)
	})
	return t, nil
}

// tunnel is a session of WebTransport: the stream of its CONNECT, and the one of the session of headgate/1 in it.
type tunnel struct {
	*http3.Stream
	*h3Conn
	str *quic.Stream
	ctx context.Context // ends with the session of WebTransport
	end context.CancelFunc
}

// Context implements carrier.
func (t *tunnel) Context() context.Context { return t.ctx }

// ReceiveDatagram implements carrier: those that belong to the session.
func (t *tunnel) ReceiveDatagram(ctx context.Context) ([]byte, error) {
	return t.Stream.ReceiveDatagram(ctx)
}

// hear reads what the client says of the session: that it ends, by a capsule or by ending the stream.
func (t *tunnel) hear() {
	defer t.end()
	parser := http3.NewCapsuleParser(io.LimitReader(t.Stream, mostCapsules))
	for {
		kind, capsule, err := parser.Next()
		if err != nil || kind == webtransportClose || capsule.Discard() != nil {
			return
		}
	}
}

// close ends the session of WebTransport, without a fault.
func (t *tunnel) close() {
	t.end()
	t.Stream.CancelRead(quic.StreamErrorCode(http3.ErrCodeNoError))
	t.Stream.Close()
}
