package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/headgate-io/headgate/event"
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
	rejected io.Writer // of --rejected; nil: none

	total       summary
	unnamed     int  // rejected events of which it is not known which they are
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
	Truncated    bool         `json:"errors_truncated"` // more were rejected than Errors has

	after time.Duration // Retry-After
}

type eventError struct {
	Index  int    `json:"index"`
	Offset int    `json:"offset"`
	Code   string `json:"code"`
	Detail string `json:"detail"`

	Retryable bool `json:"retryable"` // the same event can be taken later
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
				return failure
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
	if s.unnamed > 0 && s.rejected != nil {
		rejected = fmt.Errorf("%w; %d of them are not in the file of --rejected: the gateway names only so many of a request (give a smaller --batch), and a file that is sent whole has no parts", rejected, s.unnamed)
	}
	return errors.Join(late, rejected)
}

// sendBatch sends b, and again what of it can be taken later, while the time allows.
func (s *sender) sendBatch(ctx context.Context, b *batch) error {
	t := &tries{start: s.clock.now(), key: fmt.Sprintf("%s-%d", s.name, b.first)}
	for round := 1; ; round++ {
		a, err := s.tryOn(ctx, b, t)
		if err != nil {
			return fmt.Errorf("stopped before %s: %w", s.place(b, 0), err)
		}
		if b.lines != nil && a.events() != len(b.lines) {
			return fmt.Errorf("stopped before %s: %w: it answered for %d of %d events", s.place(b, 0), errForeign, a.events(), len(b.lines))
		}
		later, left := a.later(), s.left(t)
		if len(later) == 0 || left <= 0 || a.events() != len(b.starts) {
			return s.count(b, a)
		}
		again := b.pick(later)
		if err := s.count(b, a.without(len(later))); err != nil {
			return err
		}
		n := round - 1
		if a.after > 0 {
			n = 0 // the gateway knows when
		}
		if s.clock.pause(ctx, min(left, backoff(n, outcome{after: a.after}, s.clock.random()))) != nil {
			return fmt.Errorf("stopped before %s: interrupted", s.place(again, 0))
		}
		b, t.key = again, fmt.Sprintf("%s-%d-%d", s.name, b.first, round)
	}
}

// tries are the attempts to send one batch.
type tries struct {
	start    time.Time
	key      string // the Idempotency-Key
	n        int    // that failed
	answered error  // the last answer of the gateway
}

// left is how much of the time to try again is left.
func (s *sender) left(t *tries) time.Duration {
	return t.start.Add(s.options.timeout).Sub(s.clock.now())
}

// tryOn sends b until it is answered for. The last attempt is made when the time is up.
func (s *sender) tryOn(ctx context.Context, b *batch, t *tries) (answer, error) {
	for n := 0; ; n++ {
		a, err := s.post(ctx, b, t)
		if err == nil {
			return a, nil
		}
		if ctx.Err() != nil {
			return a, errors.New("interrupted; the request in progress may be stored")
		}
		t.n++
		now := s.clock.now()
		o := judge(err, now)
		if o.durable {
			if a.events() == 0 || b.lines != nil && a.events() != len(b.lines) { // whoever said it did not count
				a = answer{Accepted: len(b.starts)}
			}
			s.undelivered += a.Accepted
			return a, nil
		}
		if !o.retry {
			return a, err
		}
		if _, ok := errors.AsType[*refusedError](err); ok {
			t.answered = err
		}
		left := s.left(t)
		if left <= 0 {
			return a, t.givenUp(err, now)
		}
		s.sayRetry(err, o)
		if err := s.clock.pause(ctx, min(left, backoff(n, o, s.clock.random()))); err != nil {
			return a, errors.New("interrupted")
		}
	}
}

// givenUp says how long was tried, and what the gateway answered at all.
func (t *tries) givenUp(err error, now time.Time) error {
	if _, ok := errors.AsType[*refusedError](err); !ok && t.answered != nil {
		err = fmt.Errorf("%w; its last answer was: %w", err, t.answered)
	}
	return fmt.Errorf("given up after %v and %d attempts: %w", now.Sub(t.start).Round(time.Millisecond), t.n, err)
}

// later returns the rejected events that the gateway may take later, by index.
func (a *answer) later() (events []int) {
	if a.Truncated || len(a.Errors) != a.Rejected {
		return nil
	}
	for _, e := range a.Errors {
		if e.Retryable {
			events = append(events, e.Index)
		}
	}
	return events
}

// without returns a without the rejected events that can be taken later, of which there are n.
func (a *answer) without(n int) answer {
	rest := *a
	rest.Rejected -= n
	rest.Errors = slices.DeleteFunc(slices.Clone(a.Errors), func(e eventError) bool { return e.Retryable })
	return rest
}

// post is one attempt. An answer in which all events are rejected has a status of failure and counts all the same.
func (s *sender) post(ctx context.Context, b *batch, t *tries) (a answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, max(s.left(t), time.Second))
	defer cancel()
	c := call{method: http.MethodPost, path: s.options.path(), mediaType: s.options.mediaType, body: b.body,
		header: http.Header{"Idempotency-Key": {t.key}}}
	if s.options.ordering != "" {
		c.header.Set(orderingField, s.options.ordering)
	}
	header, err := s.to.do(ctx, c, &a)
	if refused, ok := errors.AsType[*refusedError](err); ok {
		header = refused.header
		some := refused.doc.Stored == event.StoredDurable || refused.doc.Stored == event.StoredUnknown // of the others it is said how far they came
		counted := json.Unmarshal(refused.body, &a) == nil && a.Rejected > 0 && !some
		if counted && (!refused.doc.Retryable || len(a.later()) > 0) {
			err = nil
		}
	}
	a.after = retryAfter(header, s.clock.now())
	return a, err
}

// count adds an answer up, prints the first rejected events and saves all that are named.
func (s *sender) count(b *batch, a answer) error {
	s.total.Sent += a.events()
	s.total.Accepted += a.Accepted
	s.total.Filtered += a.Filtered
	s.total.Rejected += a.Rejected
	s.total.Duplicates += a.Duplicates
	s.total.DeadLettered += a.DeadLettered
	s.unnamed += a.Rejected - len(a.Errors)
	for _, e := range a.Errors {
		if err := s.save(b, e.Index); err != nil {
			return err
		}
		if s.shown == maxShown {
			continue
		}
		s.shown++
		s.progress.clear()
		fmt.Fprintf(s.stderr, "%s: %s: %s\n", s.place(b, e.Index), e.Code, e.Detail)
	}
	return nil
}

// save writes a rejected event to the file of --rejected, which can be sent like the one it comes from.
func (s *sender) save(b *batch, i int) error {
	if s.rejected == nil {
		return nil
	}
	if b.whole || i >= len(b.starts) {
		s.unnamed++
		return nil
	}
	if _, err := s.rejected.Write(b.framed(i)); err != nil {
		return fmt.Errorf("--rejected: %w", err)
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
	return fmt.Sprintf("%s: event %d", s.file, b.number(i))
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
