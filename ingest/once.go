package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/ingest/cloudevents"
	"github.com/headgate-io/headgate/internal/requestid"
	"github.com/headgate-io/headgate/internal/window"
)

// maxOnce is how many characters an idempotency key may have.
const maxOnce = 255

// idempotencyKey reads an Idempotency-Key: a string of RFC 8941 (section 3.3.3) as the IETF's draft has it, or the bare
// characters. Both forms of the same characters are the same key.
func idempotencyKey(value []byte) ([]byte, *refusal) {
	key, ok := value, true
	if len(value) > 0 && value[0] == '"' {
		key, ok = unquoteString(value)
	}
	for _, c := range key {
		ok = ok && ' ' <= c && c <= '~'
	}
	if !ok || len(key) == 0 || len(key) > maxOnce {
		return nil, refuse(event.BadParameter, `Idempotency-Key is 1 to %d printable ASCII characters, in double quotes or without`, maxOnce)
	}
	return key, nil
}

// unquoteString returns a view where the string has no escapes.
func unquoteString(value []byte) (key []byte, ok bool) {
	if len(value) < 2 || value[len(value)-1] != '"' {
		return nil, false
	}
	inner := value[1 : len(value)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner, bytes.IndexByte(inner, '"') < 0
	}
	for i := 0; i < len(inner); i++ {
		c := inner[i]
		if c == '\\' {
			if i++; i == len(inner) || inner[i] != '"' && inner[i] != '\\' {
				return nil, false
			}
			c = inner[i]
		} else if c == '"' {
			return nil, false
		}
		key = append(key, c)
	}
	return key, true
}

// storeOnce is storeBody for a request with an idempotency key: it is stored once, and its answer is said again.
func (c *core) storeOnce(ctx context.Context, r *request, p *plan, w *work) (a answer) {
	asked := window.Request{Key: window.Sums(p.caller, []byte(p.name), p.once), Content: contentOf(r, p, w.body.bytes()), Stream: p.name, Owner: c.owner(p, r)}
	run, standing := c.keys.Begin(asked, time.Now())
	wait := &deadline{Context: ctx, until: time.Now().Add(c.timeout)}
	defer wait.end()
	for {
		switch standing {
		case window.NewRun:
			a = c.storeFirst(ctx, r, p, w, run)
		case window.Finished, window.Unknown:
			said, ok, err := run.Wait(wait)
			if err == nil && !ok { // nothing of it was stored after all
				run, standing = c.keys.Begin(asked, time.Now())
				continue
			}
			a = c.again(r, p, said, err)
		default:
			a = c.refused(p.notOnce(standing), p.who)
		}
		a.add("Headgate-Idempotency-Window", strconv.Itoa(int(c.keys.Reach(asked.Owner, time.Now())/time.Second)))
		return a
	}
}

// contentOf is what requests with one key must have in common: the body as it was sent and what says how it is read.
func contentOf(r *request, p *plan, body []byte) window.Sum {
	_, query, _ := route(r.target)
	var room [16]event.Attr
	said := room[:0]
	for _, f := range r.fields {
		if p.matters(f.Name) {
			said = append(said, f)
		}
	}
	slices.SortStableFunc(said, func(a, b event.Attr) int { return bytes.Compare(a.Name, b.Name) })
	parts := [][]byte{body, query}
	for _, f := range said {
		parts = append(parts, f.Name, f.Value)
	}
	return window.Sums(parts...)
}

// matters tells whether a header field of this name changes what is stored or answered. What a plugin reads besides is not
// known, and what a client or a proxy says anew each time must not count.
func (p *plan) matters(name []byte) bool {
	switch string(name) {
	case "content-type", "content-encoding", "headgate-key", "headgate-ack", "headgate-source", "headgate-session", "headgate-ordering":
		return true
	}
	return bytes.HasPrefix(name, []byte(cloudevents.Prefix)) || slices.ContainsFunc(p.settings.Headers, func(h string) bool { return h == string(name) })
}

// storeFirst takes the first request with its key. What is stored, or may be, binds the key; all else frees it.
func (c *core) storeFirst(ctx context.Context, r *request, p *plan, w *work, run *window.Run) (a answer) {
	bound := false
	defer func() {
		if !bound { // in a panic too
			run.Forget()
		}
	}()
	p.run = run
	a = c.storeBody(ctx, r, p, w)
	if bound = a.unknown || a.safe || a.status < 300; a.unknown {
		run.SetUnknown() // and finished by Batch.Late
	} else if bound {
		c.finish(run, &a)
	}
	return a
}

// finish remembers an answer. Where its events are safe, what is kept over a restart has it before the client does.
func (c *core) finish(run *window.Run, a *answer) {
	if a.safe {
		run.Safe()
	}
	run.Finish(a.remembered(), time.Now())
	c.keys.Flush()
}

// late returns what finishes a run whose client was told that the outcome is not known.
func (c *core) late(p *plan) func(*event.Batch, error) {
	run, of := p.run, &plan{name: p.name, counters: p.counters, limits: p.limits, who: identity{request: p.who.request}}
	return func(b *event.Batch, err error) {
		if made := c.metrics.known([]byte(of.name)); made != nil { // its stream was made by this request
			of.counters = made
		}
		var problem *event.Problem
		if err != nil {
			problem = c.notAccepted(err)
		}
		a := c.outcome(&request{}, of, b, problem)
		if a.status < 300 || a.unknown || a.safe {
			if problem == nil || a.safe {
				run.Safe()
			}
			run.Finish(a.remembered(), time.Now())
		} else {
			run.Forget()
		}
	}
}

// notOnce says why a request is not taken for its key.
func (p *plan) notOnce(standing int) *refusal {
	var no *refusal
	switch standing {
	case window.Running:
		no = refuse(event.IdempotencyInFlight, "the request with this Idempotency-Key is still running; ask again for its answer").with("Retry-After", retryAfter(time.Second))
	case window.Different:
		no = refuse(event.IdempotencyMismatch, "this Idempotency-Key was used with other content; choose another key for another request")
	default:
		no = refuse(event.Overloaded, "too many requests of yours, or to this stream, with idempotency keys are running; send again later")
	}
	no.Stream = p.counters.name
	return no
}

// again says the answer of the first request, err meaning that it is still not known.
func (c *core) again(r *request, p *plan, said window.Answer, err error) (a answer) {
	if err != nil {
		problem := event.Problemf(event.AckTimeout, "the first request with this Idempotency-Key is still not acknowledged; send it again")
		problem.Stored = event.StoredUnknown
		return c.refused(&refusal{Problem: problem, Stream: p.counters.name}, p.who)
	}
	if p.who.request == "" {
		p.who.request = requestid.New(time.Now())
	}
	a = answer{status: said.Status, mediaType: said.MediaType, doc: append(r.room[:0], said.Doc...), safe: said.Status == 503 && saidSafe(said.Doc)}
	a.add("Headgate-Rejected", said.Rejected)
	a.add("Idempotency-Replayed", "true")
	a.finish(p.who)
	return a
}

// saidSafe tells that a remembered document says that the events are durable. In a string of a client the quotes would be
// escaped.
func saidSafe(doc []byte) bool { return bytes.Contains(doc, []byte(`"stored":"durable"`)) }

// remembered copies what is said again.
func (a *answer) remembered() window.Answer {
	said := window.Answer{Status: a.status, MediaType: a.mediaType, Doc: bytes.Clone(a.doc)}
	for _, f := range a.fields[:a.n] {
		if f.name == "Headgate-Rejected" {
			said.Rejected = f.value
		}
	}
	return said
}

// watchKeys publishes how far back the window reaches.
func watchKeys(reg prometheus.Registerer, keys *window.Keys) error {
	if reg == nil {
		return nil
	}
	gauge := func(name, help string, read func(window.State) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return read(keys.State(time.Now())) })
	}
	var all []error
	for _, c := range []prometheus.Collector{
		gauge("headgate_idempotency_window_seconds", "How far back every request with an Idempotency-Key is remembered; less than configured when the log is new or was damaged, and when keys of a caller had to make room: then for that one.",
			func(s window.State) float64 { return s.Reach.Seconds() }),
		gauge("headgate_idempotency_keys", "Idempotency keys that are remembered with their answers.", func(s window.State) float64 { return float64(s.Finished) }),
		gauge("headgate_idempotency_running", "Requests with an Idempotency-Key whose outcome is not known yet.", func(s window.State) float64 { return float64(s.Pending) }),
	} {
		all = append(all, reg.Register(c))
	}
	if err := errors.Join(all...); err != nil {
		return fmt.Errorf("register idempotency metrics: %w", err)
	}
	return nil
}
