package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/headgate-io/headgate/forward"
)

// lane is one partition's way to its node. It has one run in flight and so one connection, which nobody shares:
// there is no pool to wait for, and the end of a context ends exactly its own exchange.
type lane struct {
	node *node
	tls  *tls.Config

	mu    sync.Mutex // held by Send; Close waits for it
	last  uint64     // highest number sent
	doubt uint64     // up to this number the node may have stored what it did not confirm
	conn  *conn      // nil: not connected
	req   fasthttp.Request
	resp  fasthttp.Response
}

// maxIdle is less than the time after which most servers close a connection that brings nothing.
const maxIdle = 30 * time.Second

func newLane(partition int32, n *node, settings *tls.Config) *lane {
	l := &lane{node: n}
	if n.server != "" {
		l.tls = settings.Clone()
		l.tls.ServerName = n.server
	}
	h := &l.req.Header
	h.SetMethod(fasthttp.MethodPost)
	h.SetHost(n.host)
	h.SetRequestURI(n.target)
	h.SetUserAgent("headgate")
	if n.auth != "" {
		h.Set("Authorization", n.auth)
	}
	h.Set(forward.HeaderPartition, strconv.FormatInt(int64(partition), 10))
	return l
}

// send posts a run if the node's circuit lets it through, and tells the circuit what came of it.
func (l *lane) send(ctx context.Context, run *forward.Run, timeout time.Duration) error {
	c := &l.node.circuit
	e, err := c.enter(time.Now())
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	a, err := l.post(limited, run)
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		c.leave(e)
		return ctx.Err()
	}
	refused, f := outcome(a, err)
	if f != nil {
		if mayBeStored(a, err) {
			l.doubt = max(l.doubt, run.Last)
		}
		f.err = fmt.Errorf("post to %s: %w", l.node.name, f.err)
		wait := c.failed(e, time.Now(), *f)
		return &forward.SendError{After: wait, Code: f.code, Reason: f.reason, Err: f.err}
	}
	c.succeeded()
	if refused != nil {
		refused.Err = fmt.Errorf("post to %s: %w", l.node.name, refused.Err)
		return refused
	}
	return nil
}

// post sends the run over the connection at hand or a new one. A node may close a connection just when a run comes
// along, which is no failure: the run goes out once more, over a new one.
func (l *lane) post(ctx context.Context, run *forward.Run) (answer, error) {
	l.fill(run)
	if l.conn != nil && time.Since(l.conn.used) > maxIdle {
		l.disconnect()
	}
	used := l.conn != nil
	a, err := l.exchange(ctx)
	if used && errors.Is(err, errNoAnswer) && ctx.Err() == nil {
		l.req.Header.Set(forward.HeaderAgain, "true")
		a, err = l.exchange(ctx)
	}
	l.req.SetBodyRaw(nil) // the payload is lent
	return a, err
}

// exchange sends the request and reads its answer; a connection that can't be used again is closed.
func (l *lane) exchange(ctx context.Context) (answer, error) {
	if l.conn == nil {
		c, err := dial(ctx, l.node.addr, l.tls)
		if err != nil {
			return answer{}, err
		}
		l.conn = c
	}
	again, err := l.conn.exchange(ctx, &l.req, &l.resp)
	if !again {
		l.disconnect()
	}
	if err != nil {
		return answer{}, err
	}
	h := &l.resp.Header
	return answer{
		status: h.StatusCode(), retryAfter: string(h.Peek("Retry-After")), date: string(h.Peek("Date")),
		body: l.resp.Body(),
	}, nil
}

// fill makes the request of a run.
func (l *lane) fill(run *forward.Run) {
	h := &l.req.Header
	h.SetContentType(run.ContentType)
	if run.ContentEncoding != "" {
		h.SetContentEncoding(run.ContentEncoding)
	} else {
		h.Del(fasthttp.HeaderContentEncoding)
	}
	h.Set("Idempotency-Key", run.ID)
	h.Set(forward.HeaderStream, run.Stream)
	number := func(name string, n uint64) { h.Set(name, strconv.FormatUint(n, 10)) }
	number(forward.HeaderFirst, run.First)
	number(forward.HeaderLast, run.Last)
	number(forward.HeaderCount, uint64(run.Events))
	number(forward.HeaderTableVersion, run.TableVersion)
	if run.Again || run.First <= l.doubt {
		h.Set(forward.HeaderAgain, "true")
	} else {
		h.Del(forward.HeaderAgain)
	}
	l.req.SetBodyRaw(run.Payload)
}

func (l *lane) disconnect() {
	if l.conn != nil {
		_ = l.conn.Close() // nothing more is expected of it
		l.conn = nil
	}
}
