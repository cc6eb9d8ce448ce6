package ingest

import (
	"bufio"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/certs"
)

// secret returns the TLS settings of a server with a development certificate.
func secret(t *testing.T) *tls.Config {
	t.Helper()
	pair, err := certs.Development(t.TempDir(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	k, err := certs.Open(pair, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return k.TLS("http/1.1")
}

// serveTLS is serve with a second listener, of which it returns the address.
func serveTLS(t *testing.T, cfg Config, s *fakeStream) (g *gate, addr string) {
	t.Helper()
	cfg.TLS, cfg.TLSListen = secret(t), "127.0.0.1:0"
	g = serve(t, cfg, s)
	return g, g.secure
}

// dialTLS opens a connection with TLS; what is under it is the second result.
func (g *gate) dialTLS() (*client, net.Conn) {
	g.t.Helper()
	raw := g.dialAt(g.secure)
	c := tls.Client(raw.Conn, &tls.Config{InsecureSkipVerify: true})
	if err := c.Handshake(); err != nil {
		g.t.Fatal(err)
	}
	return &client{g.t, c, bufio.NewReader(c)}, raw.Conn
}

func TestTLSBesidePlain(t *testing.T) {
	g, _ := serveTLS(t, Config{}, &fakeStream{})
	c, _ := g.dialTLS()
	for range 3 {
		c.send(request11(events, "1\n", ndjson)).answer().want(t, 200, "")
	}
	g.post("2\n", ndjson).want(t, 200, "")
	all := g.take()
	if len(all) != 4 || all[0].data != "1" || all[3].data != "2" || all[0].producer != "127.0.0.1" {
		t.Errorf("stored %+v", all)
	}
	if state := c.Conn.(*tls.Conn).ConnectionState(); state.Version != tls.VersionTLS13 {
		t.Errorf("version %x", state.Version)
	}
	raw := g.dialAt(g.secure)
	if err := tls.Client(raw.Conn, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}).Handshake(); err == nil {
		t.Error("TLS 1.2 is spoken")
	}
}

func TestTLSAlone(t *testing.T) {
	g, _ := serveTLS(t, Config{Listen: Nowhere}, &fakeStream{})
	if g.addr != "" {
		t.Errorf("listens on %s, too", g.addr)
	}
	c, _ := g.dialTLS()
	c.send(request11(events, "1\n", ndjson)).answer().want(t, 200, "")
}

func TestTLSWholeBodies(t *testing.T) {
	g, _ := serveTLS(t, Config{}, &fakeStream{})
	body := strings.Repeat("0123456789abcde\n", 40<<10)
	c, _ := g.dialTLS()
	c.send(request11(events, body, rawType)).answer().want(t, 200, "")
	c.send(chunked(events, rawType)+chunks(body, 5000)+"0\r\n\r\n").answer().want(t, 200, "")
	if got := g.data(); !slices.Equal(got, []string{body, body}) {
		t.Error("the bodies did not arrive as they were sent")
	}
}

// F39 under TLS: however the connection ends in a body, nothing of it is stored, and who said good-bye gets an answer.
func TestF39TLSCutBodies(t *testing.T) {
	g, _ := serveTLS(t, Config{}, &fakeStream{})
	body := strings.Repeat("1\n", 4<<10)
	for _, text := range []string{request11(events, body, ndjson), chunked(events, ndjson) + chunks(body, 1000) + "0\r\n\r\n"} {
		head := strings.Index(text, "\r\n\r\n") + 4
		for n := head; n < len(text); n += 1024 {
			c, _ := g.dialTLS()
			c.send(text[:n])
			if err := c.Conn.(*tls.Conn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if r := c.answer().want(t, 400, event.IncompleteBody); !r.Close {
				t.Error("the connection stays open")
			}
			rude, raw := g.dialTLS()
			rude.send(text[:n])
			raw.Close()
		}
	}
	g.until(func() bool { return len(g.Server.open.all()) == 0 })
	g.nothing()
}

func TestTLSClientThatWritesFirstGetsTheAnswer(t *testing.T) {
	g, _ := serveTLS(t, Config{}, &fakeStream{})
	c, _ := g.dialTLS()
	c.send(request11(events, strings.Repeat("x", 10<<20), "Content-Type: text/weird")).answer().want(t, 415, event.UnsupportedMediaType)
	c.closed()
}

// A handshake that does not come to its end is cut off, and a slow request as well.
func TestH03TLSSlowClients(t *testing.T) {
	t.Parallel() // it waits
	g, addr := serveTLS(t, Config{ReadTimeout: slowly}, &fakeStream{})
	silent, _ := g.dialTLS() // no request
	cut := []*client{
		silent,
		g.dialAt(addr), // no byte
		g.dialAt(addr).send("\x16\x03\x01\x02\x00\x01"), // the beginning of a ClientHello
	}
	var told []*client
	for _, text := range []string{"POST " + events + " HTTP/1.1\r\nHost: x\r\nA", chunked(events, ndjson) + "2\r\n1\n\r\n"} {
		c, _ := g.dialTLS()
		told = append(told, c.send(text))
	}
	for _, c := range told {
		c.answer().want(t, 408, event.RequestTimeout)
	}
	for _, c := range append(cut, told...) {
		c.closed()
	}
	g.until(func() bool { return len(g.Server.open.all()) == 0 })
	g.nothing()
}

func TestPlainRequestOnTheTLSPort(t *testing.T) {
	g, addr := serveTLS(t, Config{}, &fakeStream{})
	c := g.dialAt(addr).send(request11(events, "1\n", ndjson))
	if r := c.answer().want(t, 400, event.BadFraming); !strings.Contains(r.doc.Detail, "https") {
		t.Errorf("got %s", r.body)
	}
	c.closed()
	g.dialAt(addr).send("\x00\x01\x02\x03\x04\x05").closed()
	g.nothing()
	if n := g.counted("headgate_http_requests_total"); n != 0 {
		t.Errorf("%v requests counted", n)
	}
}

// H10 under TLS: plain and secure connections count together, and the surplus is closed before any handshake.
func TestH10TLSSurplusIsClosed(t *testing.T) {
	g, addr := serveTLS(t, Config{MaxConnections: 2}, &fakeStream{})
	first := g.dial().send(request11(events, "1\n", ndjson))
	first.answer().want(t, 200, "")
	second, _ := g.dialTLS()
	second.send(request11(events, "1\n", ndjson)).answer().want(t, 200, "")
	surplus := g.dialAt(addr)
	if n, err := surplus.r.Read(make([]byte, 1)); n != 0 || err == nil || err == errTimeout(err) {
		t.Errorf("read %d, %v", n, err)
	}
	g.dial().answer().want(t, 503, event.Overloaded)
	second.send(request11(events, "1\n", ndjson)).answer().want(t, 200, "")
}

func TestP04TLSShutdown(t *testing.T) {
	g, addr := serveTLS(t, Config{}, &fakeStream{})
	idle, _ := g.dialTLS()
	idle.send(request11(events, "1\n", ndjson)).answer().want(t, 200, "")
	silent, _ := g.dialTLS()
	begun := g.dialAt(addr).send("\x16\x03\x01\x02\x00")
	g.until(func() bool { return len(g.Server.open.all()) == 3 })
	done := make(chan error, 1)
	go func() { done <- g.Shutdown(t.Context()) }()
	if _, err := idle.r.ReadByte(); err != io.EOF { // a proper end, with close_notify
		t.Errorf("idle: %v", err)
	}
	silent.closed()
	begun.closed()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Deadlines of the socket that are older than those of the request do not break TLS.
func TestTLSOutlivesOldDeadlines(t *testing.T) {
	settings := secret(t)
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer near.Close()
		c := newConn(far, newRoster(&Config{MaxConnections: 1}), settings)
		defer c.kill()
		go func() {
			client := tls.Client(near, &tls.Config{InsecureSkipVerify: true, SessionTicketsDisabled: true})
			io.WriteString(client, "a")
			<-time.After(time.Hour)
			io.WriteString(client, "b")
			got := make([]byte, 6)
			io.ReadFull(client, got)
			client.Write(got[5:])
		}()
		read := func(limit time.Duration, want string) {
			t.Helper()
			c.SetReadDeadline(time.Now().Add(limit))
			got := make([]byte, 1)
			if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
				t.Fatalf("read %q, %v", got, err)
			}
		}
		read(time.Second, "a")
		read(2*time.Hour, "b")
		if _, err := io.WriteString(c, "answer"); err != nil {
			t.Fatal(err)
		}
		read(time.Second, "r")
	})
}
