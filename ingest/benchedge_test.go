package ingest

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// endless is a client that sends one request again and again, the next when the last is answered.
type endless struct {
	net.Conn // nil: what is not here is not used
	request  []byte
	rest     []byte
	left     func() bool // another request is wanted
	answers  int
}

func (c *endless) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		if !c.left() {
			return 0, io.EOF
		}
		c.rest = c.request
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func (c *endless) Write(p []byte) (int, error)      { c.answers++; return len(p), nil }
func (c *endless) Close() error                     { return nil }
func (c *endless) SetDeadline(time.Time) error      { return nil }
func (c *endless) SetReadDeadline(time.Time) error  { return nil }
func (c *endless) SetWriteDeadline(time.Time) error { return nil }
func (c *endless) LocalAddr() net.Addr              { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }
func (c *endless) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// BenchmarkSingle is the whole way of a request with one event but for the kernel and the stream, beside that of a server
// that only answers.
func BenchmarkSingle(b *testing.B) {
	const line = `{"time":"2026-03-02T08:00:00.025Z","remote_ip":"10.87.193.13","remote_user":"-","request":"GET /api/v1/sessions128 HTTP/1.1",` +
		`"response":204,"bytes":34780,"referrer":"https://example.com/search?q=headgate","agent":"Mozilla/5.0 (X11; Linux x86_64)"}`
	request := fmt.Appendf(nil, "POST /v1/streams/s/events?ack=accepted HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(line), line)
	server, err := New(Config{}, fakeGate{"s": quietStream()}, Deps{})
	if err != nil {
		b.Fatal(err)
	}
	bare := &fasthttp.Server{Handler: func(c *fasthttp.RequestCtx) {
		c.SetStatusCode(fasthttp.StatusAccepted)
		c.SetBodyString(strconv.Itoa(len(c.PostBody())))
	}}
	for _, c := range []struct {
		name    string
		http    *fasthttp.Server
		express *express
	}{{"gateway", server.http, server.fast}, {"fasthttp", server.http, nil}, {"bare", bare, nil}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			client := &endless{request: request, left: b.Loop}
			l := newListener(nil, newRoster(&server.cfg), nil, nil)
			l.express = c.express
			if err := c.http.ServeConn(l.admit(client)); err != nil {
				b.Fatal(err)
			}
			if client.answers != b.N {
				b.Errorf("%d answers to %d requests", client.answers, b.N)
			}
		})
	}
}
