package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/budget"
	"github.com/headgate-io/headgate/internal/failpoint"
	"github.com/headgate-io/headgate/internal/requestid"
	"github.com/headgate-io/headgate/internal/window"
)

// core handles requests and knows no transport. It may be used concurrently.
type core struct {
	gate    Gate
	auth    Auth  // nil: everybody may send
	rates   Rates // nil: as much as they like
	budget  *budget.Budget
	metrics *metrics
	log     *slog.Logger
	timeout time.Duration // from the end of the body to the answer
	heavy   *heavy        // nil: any number of large bodies is decoded at a time
	keys    *window.Keys
	owners  window.Secret // keys their hash
}

// serve answers one request.
func (c *core) serve(ctx context.Context, r *request) answer {
	var p plan
	if no := c.examine(&p, r); no != nil {
		return c.refused(no, identify(r.fields))
	}
	return c.take(ctx, r, &p)
}

// take answers a request that has been examined. What it has reserved of the budget is free again when it returns or
// panics; after a panic the rest of its memory is left to the garbage collector, in case somebody still reads it.
func (c *core) take(ctx context.Context, r *request, p *plan) answer {
	p.who = identify(r.fields)
	if no := c.admit(r, p); no != nil { // memory may have become scarce
		no.Stream = p.counters.name
		return c.refused(no, p.who)
	}
	w := takeWork(c.budget, c.heavy)
	done := false
	defer func() {
		if !done {
			w.account.close()
		}
	}()
	a := c.store(ctx, r, p, w)
	done = true
	w.give()
	return a
}

// store takes a request from its first body byte to its answer.
func (c *core) store(ctx context.Context, r *request, p *plan, w *work) answer {
	failpoint.Pass(failpoint.Accepted)
	if problem := c.receive(r, p, w); problem != nil {
		a := c.refused(&refusal{Problem: problem, Stream: p.counters.name}, p.who)
		a.close = true
		return a
	}
	received := r.now
	if !r.whole {
		received = time.Now()
	}
	p.sent, p.received, w.account.until = int64(len(w.body.bytes())), received, received.Add(c.timeout)
	if r.length < 0 { // chunks: their bytes are counted now that they are there
		if problem := c.count(p, r, Load{Bytes: p.sent}); problem != nil {
			return c.refused(&refusal{Problem: problem, Stream: p.counters.name}, p.who)
		}
	}
	if len(p.once) > 0 && !p.dry {
		return c.storeOnce(ctx, r, p, w)
	}
	return c.storeBody(ctx, r, p, w)
}

// quick is how many bytes are decoded in no time to speak of: the clock is not asked again behind them.
const quick = 16 << 10

// storeBody takes a body that was received to its answer.
func (c *core) storeBody(ctx context.Context, r *request, p *plan, w *work) answer {
	b := &w.batch
	b.Trial = p.dry
	problem := c.inflate(p, w)
	if problem == nil {
		problem = w.decode(r, p)
	}
	if problem == nil {
		problem = c.count(p, r, Load{Events: len(b.Events), Again: p.sent})
	}
	if problem != nil {
		return c.refused(&refusal{Problem: problem, Stream: p.counters.name}, p.who)
	}
	now := p.received
	if len(b.Body) > quick || p.run != nil {
		now = time.Now()
	}
	if !now.Before(w.account.until) {
		return c.refused(&refusal{Problem: event.Problemf(event.Overloaded, "decoding the request took all of its time; send it again later"), Stream: p.counters.name}, p.who)
	}
	c.describe(p, b, r, now)
	if p.run != nil {
		b.Late, b.Safe = c.late(p), p.run.Safe
	}
	rejected := b.Counts().Rejected
	switch {
	case b.Trial:
		return c.try(ctx, p, w)
	case b.Strict && rejected > 0:
		problem = event.Problemf(event.StrictRejected, "%d of %d events are refused and mode=strict stores all or nothing", rejected, len(b.Events))
	case rejected < len(b.Events):
		failpoint.Pass(failpoint.Decoded)
		problem = c.accept(ctx, p.stream, b, w.account.until)
		c.name(p)
	}
	return c.outcome(r, p, b, problem)
}

// receive reads the body as it was sent, whole.
func (c *core) receive(r *request, p *plan, w *work) *event.Problem {
	err := w.body.open(r.length)
	if err == nil && r.body != nil {
		err = w.body.fill(r.body, p.limits.Body)
		p.counters.wire.Add(float64(len(w.body.bytes())))
	}
	if err == nil {
		return nil
	}
	return notReceived(err, p.limits.Body, &w.account)
}

func notReceived(err error, limit int64, a *account) *event.Problem {
	var problem *event.Problem
	switch {
	case err == errOverLimit:
		return tooLarge(event.BodyTooLarge, "body", limit, limit+1)
	case err == errOverBudget:
		return a.refused()
	case errors.As(err, &problem):
		return problem
	}
	return event.Problemf(event.IncompleteBody, "the body broke off: %v; nothing of it is stored", err)
}

// inflate undoes the codings of the body, the last one first. What is still coded then is a body like the one that came,
// and may not be larger than one.
func (c *core) inflate(p *plan, w *work) *event.Problem {
	most := p.limits.inflated(len(w.body.bytes()))
	for i := p.codings.n - 1; i >= 0; i-- {
		limit, src := most, w.body.bytes()
		if i > 0 {
			limit = min(most, p.limits.Body)
		}
		err := w.spare.take(min(int64(4*len(src)), limit, atOnce))
		if err == nil {
			err = p.codings.applied[i].inflate(&w.spare, src, limit)
		}
		if err != nil {
			w.account.rest() // nothing is decoded: the turn that a coding may have taken is over
			if err == errOverBudget {
				return w.account.refused()
			}
			return c.notInflated(err, p, limit)
		}
		w.body.slab, w.spare.slab = w.spare.slab, w.body.slab
		w.spare.close()
	}
	p.counters.inflated.Add(float64(len(w.body.bytes())))
	return nil
}

func (c *core) notInflated(err error, p *plan, limit int64) *event.Problem {
	if err == errOverLimit {
		problem := tooLarge(event.InflatedTooLarge, "inflated", limit, limit+1)
		if limit < p.limits.Inflated && limit != p.limits.Body {
			problem.Detail = fmt.Sprintf("the body inflates to more than %d times its size", p.limits.Ratio)
		}
		return problem
	}
	return c.problem(err)
}

// describe fills in what the batch says of the request. Header fields stay the transport's bytes.
func (c *core) describe(p *plan, b *event.Batch, r *request, now time.Time) {
	b.Stream, b.ID, b.Arrived = p.name, requestid.New(now), now.UnixNano()
	b.Ack, b.Strict, b.Class = p.ack, p.strict, p.class
	b.Key, b.HasKey = p.key, p.hasKey
	b.TraceParent, b.TraceState, b.RequestID = p.who.trace, p.who.state, p.who.request
	b.Caller, b.Owner = p.caller, uint64(c.owner(p, r))
	switch b.Producer = p.source; {
	case len(p.source) > 0:
	case len(p.caller) > 0:
		b.Producer = p.caller
	default:
		b.Producer = r.client
	}
	if p.who.request == "" {
		p.who.request = b.ID // one name is enough for what came without
	}
	if len(p.numbering.session) > 0 {
		p.number(b)
	}
}

// accept hands the batch to its stream and waits at most until then.
func (c *core) accept(ctx context.Context, s Stream, b *event.Batch, until time.Time) *event.Problem {
	wait := &deadline{Context: ctx, until: until}
	defer wait.end()
	if err := s.Accept(wait, b); err != nil {
		return c.notAccepted(err)
	}
	return nil
}

// name counts what becomes of the request under the name of its stream, once that is made.
func (c *core) name(p *plan) {
	if p.settings.Unmade && !p.stream.Settings().Unmade {
		p.counters = c.metrics.stream(p.name)
	}
}

func (c *core) notAccepted(err error) *event.Problem {
	var problem *event.Problem
	switch {
	case errors.As(err, &problem):
		return problem
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		problem = event.Problemf(event.AckTimeout, "not acknowledged in time; sending again may store events twice")
		problem.Stored = event.StoredUnknown
		return problem
	}
	return c.problem(err)
}
