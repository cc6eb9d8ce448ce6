package webhook

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	headerLimit = 16 << 10 // bytes of an answer's headers
	bodyLimit   = 64 << 10 // bytes of an answer's body, which nobody needs but people who look for a fault
	// lastWord is how long a node that broke off a request may take to say why; mostly it has done so already.
	lastWord = 200 * time.Millisecond
)

// errNoAnswer is an exchange that ended before the first byte of an answer.
var errNoAnswer = errors.New("no answer")

// conn is a connection to a node.
type conn struct {
	net.Conn
	r    *bufio.Reader
	head []byte      // of the request
	out  [2][]byte   // head and body, as they are
	left net.Buffers // what of them is not written
	used time.Time   // end of the last exchange
}

// dial connects; settings are nil for http.
func dial(ctx context.Context, addr string, settings *tls.Config) (*conn, error) {
	var d net.Dialer
	raw, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if settings != nil {
		secure := tls.Client(raw, settings)
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(err, raw.Close())
		}
		raw = secure
	}
	return &conn{Conn: raw, r: bufio.NewReaderSize(raw, headerLimit), used: time.Now()}, nil
}

// exchange sends a request and reads its answer. It ends soon after ctx has. again says whether the connection may
// carry another exchange.
func (c *conn) exchange(ctx context.Context, req *fasthttp.Request, resp *fasthttp.Response) (again bool, err error) {
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) }) // fails only when closed
	sent, err := c.talk(req, resp)
	c.used = time.Now()
	ended := !stop()
	switch {
	case errors.Is(err, fasthttp.ErrBodyTooLarge): // its status is known, and we are the ones who stop
		err = nil
	case err == nil:
		again = !ended && sent == nil && !resp.ConnectionClose() && c.r.Buffered() == 0
	case ended:
		return false, ctx.Err()
	}
	if status := resp.StatusCode(); err == nil && sent != nil && status < 300 {
		return false, fmt.Errorf("answered %d to a part of the request: %w", status, sent)
	}
	return again, err
}

// talk writes the request and reads the answer, also to a request that could not be written to its end: a node that
// dislikes what it sees of it may say so and hang up.
func (c *conn) talk(req *fasthttp.Request, resp *fasthttp.Response) (sent, err error) {
	if sent = c.write(req); sent != nil {
		_ = c.SetReadDeadline(time.Now().Add(lastWord)) // fails only when closed
	}
	if _, err := c.r.Peek(1); err != nil {
		return sent, errors.Join(errNoAnswer, cmp.Or(sent, err))
	}
	return sent, resp.ReadLimitBody(c.r, bodyLimit)
}

// write writes a request whose header is complete: head and body in one system call, where the connection is not
// encrypted, and neither copied.
func (c *conn) write(req *fasthttp.Request) error {
	body := req.Body()
	req.Header.SetContentLength(len(body))
	c.head = req.Header.AppendBytes(c.head[:0])
	c.out = [2][]byte{c.head, body}
	c.left = c.out[:]
	_, err := c.left.WriteTo(c.Conn)
	c.out = [2][]byte{} // the body is lent
	return err
}
