package ingest

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/quicvarint"

	"github.com/headgate-io/headgate/sdk/session"
)

// pageClient is a browser that has a page of an origin.
type pageClient struct {
	t    *testing.T
	at   string
	conn *quic.Conn
	h3   *http3.RawClientConn
}

func openPage(t *testing.T, at string) *pageClient {
	t.Helper()
	cfg := &quic.Config{EnableDatagrams: true, EnableStreamResetPartialDelivery: true}
	conn, err := quic.DialAddr(t.Context(), at, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocolH3}}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.CloseWithError(0, "") })
	c := &pageClient{t, at, conn, (&http3.Transport{EnableDatagrams: true, AdditionalSettings: webtransportSettings()}).NewRawClientConn(conn)}
	go func() {
		for {
			str, err := conn.AcceptUniStream(context.Background())
			if err != nil {
				return
			}
			go c.h3.HandleUnidirectionalStream(str)
		}
	}()
	<-c.h3.ReceivedSettings()
	return c
}

// connect asks for WebTransport, and returns what is answered.
func (c *pageClient) connect(path, origin string) (*http3.RequestStream, int) {
	c.t.Helper()
	str, err := c.h3.OpenRequestStream(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	req := &http.Request{Method: http.MethodConnect, Proto: "webtransport", Host: c.at, URL: &url.URL{Scheme: "https", Host: c.at, Path: path}, Header: http.Header{}}
	if origin != "" {
		req.Header.Set("Origin", origin)
	}
	if err := str.SendRequestHeader(req); err != nil {
		c.t.Fatal(err)
	}
	resp, err := str.ReadResponse()
	if err != nil {
		c.t.Fatal(err)
	}
	return str, resp.StatusCode
}

// session opens one, and returns the stream on which it is.
func (c *pageClient) session() (*http3.RequestStream, *rawClient) {
	c.t.Helper()
	connect, status := c.connect(webtransportPath, page)
	if status != 200 {
		c.t.Fatalf("got %d", status)
	}
	str, err := c.conn.AcceptStream(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	in := bufio.NewReader(str)
	kind, err := quicvarint.Read(in)
	of, failed := quicvarint.Read(in)
	if errors.Join(err, failed) != nil || kind != webtransportStream || of != uint64(connect.StreamID()) {
		c.t.Fatalf("a stream of type %d, of session %d, %v %v", kind, of, err, failed)
	}
	return connect, &rawClient{t: c.t, conn: c.conn, str: str, in: in, end: func() {}}
}

func servePages(t *testing.T, s *fakeStream) (*gate, string) {
	t.Helper()
	return serveQUIC(t, Config{Origins: []string{page}}, s)
}

// A session is what it is over QUIC: outcomes, watermarks, the end, and going on with it, on whatever it was before.
func TestSessionOverWebTransport(t *testing.T) {
	s := &fakeStream{}
	_, at := servePages(t, s)
	connect, c := openPage(t, at).session()
	c.welcome(hello("a"))
	c.events(1, "1", "{").events(3, "3")
	all := c.until(isAck(session.Durable, 3))
	if i := slices.IndexFunc(all, is[*session.Reject]); i < 0 || all[i].(*session.Reject).Seq != 2 {
		t.Errorf("%s", described(all))
	}
	connect.Close() // the page is left in the middle of the session
	if _, err := io.Copy(io.Discard, c.in); err == nil {
		t.Error("the stream of the session ends as if all were well")
	}
	connect, d := openPage(t, at).session()
	h := hello("a")
	h.Acked = 3
	if w := d.welcome(h); w.Settled != 3 {
		t.Errorf("settled %d", w.Settled)
	}
	d.events(4, "4").send(&session.Fin{})
	d.until(is[*session.Fin])
	if f := d.frame(); f != nil {
		t.Errorf("behind FIN: %T%+v", f, f)
	}
	closing := binary.BigEndian.AppendUint32(quicvarint.Append(quicvarint.Append(nil, webtransportClose), 4), 0)
	if _, err := connect.Write(closing); err != nil {
		t.Error(err)
	}
	if _, err := io.Copy(io.Discard, connect); err != nil {
		t.Errorf("the gateway does not end what the client has closed: %v", err)
	}
	if got := s.data(); !slices.Equal(got, []string{"1", "3", "4"}) {
		t.Errorf("stored %q", got)
	}
}

// Several sessions share a connection with requests, and each has its own datagrams.
func TestWebTransportBesideRequests(t *testing.T) {
	s := &fakeStream{}
	g, at := servePages(t, s)
	p := openPage(t, at)
	connect, c := p.session()
	_, d := p.session()
	c.welcome(accepted("a"))
	d.welcome(hello("b"))
	if err := connect.SendDatagram(append([]byte{0, byte(session.Lines)}, "1\n"...)); err != nil {
		t.Fatal(err)
	}
	until(t, "the datagram is taken", func() bool {
		return testutil.ToFloat64(g.Server.quic.sessions.datagrams.WithLabelValues(datagramTaken)) == 1
	})
	str, err := p.h3.OpenRequestStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	str.SendRequestHeader(&http.Request{Method: "GET", Host: at, URL: &url.URL{Scheme: "https", Host: at, Path: "/nothing"}, Header: http.Header{}})
	if resp, err := str.ReadResponse(); err != nil || resp.StatusCode != 404 {
		t.Errorf("%v %+v", err, resp)
	}
	d.events(1, "2").send(&session.Fin{})
	d.until(is[*session.Fin])
	if got := s.data(); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("stored %q", got)
	}
}

// Pages of other origins get none, nobody does elsewhere, and without origins it is not there.
func TestWebTransportIsRefused(t *testing.T) {
	_, at := servePages(t, &fakeStream{})
	p := openPage(t, at)
	for _, c := range []struct {
		path, origin string
		status       int
	}{{webtransportPath, "https://evil.example.com", 403}, {"/", page, 404}, {events, page, 404}, {webtransportPath, "", 200}} {
		if _, status := p.connect(c.path, c.origin); status != c.status {
			t.Errorf("%s from %q: got %d", c.path, c.origin, status)
		}
	}
	_, at = serveQUIC(t, Config{}, &fakeStream{})
	p = openPage(t, at)
	if s := p.h3.Settings(); s.EnableDatagrams || len(s.Other) > 0 {
		t.Errorf("%+v", s)
	}
	if _, status := p.connect(webtransportPath, page); status != 404 {
		t.Errorf("without origins: got %d", status)
	}
}

// At a stop a page learns what was taken, like everybody; one that does not listen holds up nothing.
func TestWebTransportDrains(t *testing.T) {
	s := &fakeStream{}
	g, at := servePages(t, s)
	_, c := openPage(t, at).session()
	c.welcome(hello("a"))
	c.events(1, "1", "2")
	c.until(isAck(session.Durable, 2))
	openPage(t, at).session() // and no HELLO
	stopped := make(chan error, 1)
	go func() { stopped <- g.Server.Shutdown(context.Background()) }()
	all := c.until(is[*session.Fin])
	if i := slices.IndexFunc(all, is[*session.GoAway]); i < 0 || all[i].(*session.GoAway).Last != 2 {
		t.Errorf("%s", described(all))
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// What a client says beside a session is bounded, and nothing but its end matters.
func TestWebTransportCapsulesAreBounded(t *testing.T) {
	_, at := servePages(t, &fakeStream{})
	connect, c := openPage(t, at).session()
	c.welcome(hello("a"))
	if _, err := connect.Write(append(quicvarint.Append(quicvarint.Append(nil, 0x190b4d3d), 1), 9)); err != nil { // WT_MAX_DATA, which was not agreed on
		t.Fatal(err)
	}
	c.events(1, "1")
	c.until(isAck(session.Durable, 1))
	junk := make([]byte, 2*mostCapsules)
	copy(junk, quicvarint.Append([]byte{0x17}, uint64(len(junk))))
	connect.Write(junk) // until it is refused
	if _, err := io.Copy(io.Discard, c.in); err == nil {
		t.Error("the stream of the session ends as if all were well")
	}
}
