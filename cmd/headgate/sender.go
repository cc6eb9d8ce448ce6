package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// sender posts batches one after the other.
type sender struct {
	to       *remote
	clock    clock
	options  sendOptions
	file     string
	name     string // of this run, which nobody else has: with the number of its first event it is the key of a request
	stderr   io.Writer
	progress *progress

	total       summary
	shown       int  // rejected events that were printed
	undelivered int  // events that are durable but not delivered, as was asked
	warned      bool // of a possible duplicate
	failed      bool // a first failure was printed
}

// answer is what the gateway says of a request.
type answer struct {
	Accepted     int          `json:"accepted"`
	Filtered     int          `json:"filtered"`
	Rejected     int          `json:"rejected"`
	Duplicates   int          `json:"duplicates"`
	DeadLettered int          `json:"deadlettered"`
	Errors       []eventError `json:"errors"`
}

type eventError struct {
	Index  int    `json:"index"`
	Offset int    `json:"offset"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

func (a *answer) events() int {
	return a.Accepted + a.Filtered + a.Rejected + a.Duplicates + a.DeadLettered
}

// sendAll sends until the file ends or a request fails for good; s.total says how far it came.
func (s *sender) sendAll(ctx context.Context, source batches) error {
	start := s.clock.now()
	defer func() { s.total.Seconds = seconds(s.clock.now().Sub(start)) }()
	defer s.progress.clear()
	for {
		b, err := source.next()
		if b != nil && len(b.starts) > 0 {
			if failure := s.sendBatch(ctx, b); failure != nil {
				return fmt.Errorf("stopped before %s: %w", s.place(b, 0), failure)
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w; what comes before it was sent", s.file, err)
		}
		s.progress.show(s.total.Sent, b, s.clock.now())
		if err := s.keepRate(ctx, start); err != nil {
			return err
		}
	}
	return s.verdict()
}

// verdict is the error of a file that was sent to its end.
func (s *sender) verdict() error {
	s.progress.clear()
	var late, rejected error
	if s.undelivered > 0 {
		late = fmt.Errorf("%d events are stored but not delivered yet; do not send them again", s.undelivered)
	}
	if n := s.total.Rejected; n > 0 {
		rejected = fmt.Errorf("%d of %d events were rejected", n, s.total.Sent)
		if s.shown < n {
			rejected = fmt.Errorf("%w; only %d are shown", rejected, s.shown)
		}
	}
	return errors.Join(late, rejected)
}

// sendBatch sends b, again and again while that can help and the time allows.
func (s *sender) sendBatch(ctx context.Context, b *batch) error {
	deadline := s.clock.now().Add(s.options.timeout)
	for n := 0; ; n++ {
		a, err := s.post(ctx, b, deadline)
		if err == nil {
			return s.count(b, a)
		}
		if ctx.Err() != nil {
			return errors.New("interrupted; the request in progress may be stored")
		}
		now := s.clock.now()
		o := judge(err, now)
		if o.durable {
			s.undelivered += len(b.starts)
			return s.count(b, answer{Accepted: len(b.starts)})
		}
		if !o.retry {
			return err
		}
		wait := backoff(n, o, s.clock.random())
		if now.Add(wait).After(deadline) {
			return fmt.Errorf("given up after %v of trying again: %w", s.options.timeout, err)
		}
		s.sayRetry(err, o)
		if err := s.clock.pause(ctx, wait); err != nil {
			return errors.New("interrupted")
		}
	}
}

// post is one attempt. An answer in which all events are rejected has a status of failure and counts all the same.
func (s *sender) post(ctx context.Context, b *batch, deadline time.Time) (a answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, max(deadline.Sub(s.clock.now()), time.Second))
	defer cancel()
	c := call{method: http.MethodPost, path: s.options.path(), mediaType: s.options.mediaType, body: b.body,
		header: http.Header{"Idempotency-Key": {fmt.Sprintf("%s-%d", s.name, b.first)}}}
	_, err = s.to.do(ctx, c, &a)
	if refused, ok := errors.AsType[*refusedError](err); ok {
		if json.Unmarshal(refused.body, &a) == nil && a.Rejected > 0 && !refused.doc.Retryable {
			return a, nil
		}
	}
	return a, err
}

// count adds an answer up and prints the first rejected events.
func (s *sender) count(b *batch, a answer) error {
	if b.lines != nil && a.events() != len(b.lines) {
		return fmt.Errorf("%w: it answered for %d of %d events", errForeign, a.events(), len(b.lines))
	}
	s.total.Sent += a.events()
	s.total.Accepted += a.Accepted
	s.total.Filtered += a.Filtered
	s.total.Rejected += a.Rejected
	s.total.Duplicates += a.Duplicates
	s.total.DeadLettered += a.DeadLettered
	for _, e := range a.Errors {
		if s.shown == maxShown {
			break
		}
		s.shown++
		s.progress.clear()
		fmt.Fprintf(s.stderr, "%s: %s: %s\n", s.place(b, e.Index), e.Code, e.Detail)
	}
	return nil
}

// maxShown is how many rejected events are printed.
const maxShown = 10

// place names event i of b as compilers name places in files.
func (s *sender) place(b *batch, i int) string {
	if i < len(b.lines) {
		return fmt.Sprintf("%s:%d", s.file, b.lines[i])
	}
	return fmt.Sprintf("%s: event %d", s.file, b.first+i)
}

// sayRetry tells once that something is tried again, and once that this may store events twice.
func (s *sender) sayRetry(err error, o outcome) {
	if !s.failed {
		s.failed = true
		s.progress.clear()
		fmt.Fprintf(s.stderr, "headgate send: %v; trying again for up to %v a request\n", err, s.options.timeout)
	}
	if o.unknown && !s.warned {
		s.warned = true
		s.progress.clear()
		fmt.Fprintln(s.stderr, "headgate send: it is not known whether that request was stored; it is sent again with the same Idempotency-Key, which may store its events twice only if the gateway has restarted")
	}
}

// keepRate waits until the events sent so far are due.
func (s *sender) keepRate(ctx context.Context, start time.Time) error {
	if s.options.rate == 0 {
		return nil
	}
	due := start.Add(time.Duration(float64(s.total.Sent) / s.options.rate * float64(time.Second)))
	if wait := due.Sub(s.clock.now()); wait > 0 {
		if s.clock.pause(ctx, wait) != nil {
			return errors.New("interrupted")
		}
	}
	return nil
}
