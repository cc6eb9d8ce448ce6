package client

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/headgate-io/headgate/sdk/session"
)

// post sends batches over HTTP, one after the other, until turn ends and none is on its way. nil: it is time to try UDP.
func (c *Client) post(ctx, turn context.Context) error {
	for {
		if turn.Err() != nil { // after waits for nothing, and so not for that, while there is more to send
			return ctx.Err()
		}
		b, err := c.after(turn, c.settled())
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil: // closed, or the turn is over
			return nil
		}
		result, err := c.postOne(ctx, b)
		r, refused := errors.AsType[*refusal](err)
		if err != nil && (!refused || r.retryable) {
			return err
		}
		c.setOver("http")
		if b.result, b.known = result, true; refused { // this batch alone
			b.settle(Result{}, err)
		}
		c.settle(b.last(), func(*Batch) bool { return true })
	}
}

// answer is what the gateway says of a request.
type answer struct {
	Accepted, Filtered, Rejected, Duplicates, DeadLettered int

	Errors []struct {
		Index        int
		Code, Detail string
		Retryable    bool
	}
	Code, Detail, Stored string
	Retryable            bool
}

func (c *Client) postOne(ctx context.Context, b *Batch) (Result, error) {
	at := strings.TrimRight(c.cfg.HTTP, "/") + "/v1/streams/" + url.PathEscape(c.cfg.Stream) + "/events"
	level := c.cfg.Level
	if level != session.Unset {
		at += "?ack=" + [...]string{"", "accepted", "durable", "delivered"}[level&3]
	} else {
		level = session.Durable
	}
	mediaType, body := b.request(c.cfg.Framing)
	req, err := http.NewRequestWithContext(ctx, "POST", at, bytes.NewReader(body))
	if err != nil {
		return Result{}, &refusal{code: "address", detail: err.Error()}
	}
	for _, f := range c.cfg.Fields {
		req.Header.Set(f.Name, f.Value)
	}
	req.Header.Set("Content-Type", mediaType)
	// With the last: who goes on with a session later may divide it in another way.
	req.Header.Set("Idempotency-Key", fmt.Sprintf("%s-%d-%d", c.cfg.Session, b.First, b.last()))
	req.Header.Set("Headgate-Session", fmt.Sprintf("%s/%d", c.cfg.Session, b.First)) // what came over QUIC is not stored again
	if c.cfg.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.cfg.Token)
	}
	if c.cfg.Source != "" {
		req.Header.Set("Headgate-Source", c.cfg.Source)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return Result{}, err
	}
	defer resp.Body.Close()
	doc, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return Result{}, err
	}
	return b.answered(resp, doc, level)
}

// answered makes of an answer a result, or a refusal.
func (b *Batch) answered(resp *http.Response, doc []byte, level session.Level) (Result, error) {
	var a answer
	ours := json.Unmarshal(doc, &a) == nil
	r := Result{Accepted: a.Accepted, Filtered: a.Filtered, Rejected: a.Rejected, Duplicates: a.Duplicates, DeadLettered: a.DeadLettered, Level: level}
	for _, e := range a.Errors {
		r.Rejects = append(r.Rejects, Reject{e.Index, e.Code, e.Detail, e.Retryable})
	}
	total := a.Accepted + a.Filtered + a.Rejected + a.Duplicates + a.DeadLettered
	switch {
	case ours && uint64(total) == b.Count:
		if a.Stored == "durable" {
			r.Level = session.Durable
		}
		return r, nil
	case ours && a.Stored == "durable":
		return Result{Accepted: int(b.Count), Level: session.Durable}, nil
	case resp.StatusCode/100 == 2:
		return r, &refusal{code: "foreign", detail: "what answers there is no Headgate"}
	}
	no := &refusal{code: a.Code, detail: a.Detail, retryable: a.Retryable}
	if no.code == "" { // somebody on the way
		no.code, no.detail = strconv.Itoa(resp.StatusCode), http.StatusText(resp.StatusCode)
		switch resp.StatusCode {
		case 408, 425, 429:
			no.retryable = true
		default:
			no.retryable = resp.StatusCode >= 500
		}
	}
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
		no.after = time.Duration(seconds) * time.Second
	}
	return r, no
}

// request is the batch as the body of a request, which holds the same events byte for byte.
func (b *Batch) request(f session.Framing) (mediaType string, body []byte) {
	switch f {
	case session.Lines:
		return "application/x-ndjson", b.body
	case session.Opaque:
		return "application/vnd.headgate.events", b.body
	}
	body = append(make([]byte, 0, len(b.body)+2), '[')
	rest := b.body
	for i := range b.ends {
		n, size := binary.Uvarint(rest)
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, rest[size:][:n]...)
		rest = rest[size+int(n):]
	}
	return "application/json", append(body, ']')
}
