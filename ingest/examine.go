package ingest

import (
	"bytes"
	"errors"

	"github.com/headgate-io/headgate/event"
)

// The routes there are, as the metrics call them.
const (
	routeEvents = "events"
	routeOther  = "other"
)

// route takes the path of a request apart; events is false when it is not that of a stream's events.
func route(target []byte) (name, query []byte, events bool) {
	path, query, _ := bytes.Cut(target, []byte{'?'})
	if name, events = bytes.CutPrefix(path, []byte("/v1/streams/")); events {
		name, events = bytes.CutSuffix(name, []byte("/events"))
	}
	return name, query, events && bytes.IndexByte(name, '/') < 0
}

// examine does every check that needs no byte of the body, and makes the plan for it. It changes nothing but what the
// caller's rate has left: it may be called before the body is asked for and again when it is about to be read.
func (c *core) examine(p *plan, r *request) (no *refusal) {
	name, query, ok := route(r.target)
	if !ok {
		return refuse(event.NotFound, "events are posted to /v1/streams/{stream}/events")
	}
	if string(r.method) != "POST" {
		return refuse(event.MethodNotAllowed, "events are sent with POST").with("Allow", "POST")
	}
	if no = c.authorize(p, r.fields, name); no != nil {
		return no
	}
	if no = c.open(p, name); no != nil {
		return no
	}
	if no = p.parse(r.fields, query); no == nil {
		no = c.admit(r, p)
	}
	if no != nil {
		no.Stream = p.counters.name
	}
	return no
}

func (c *core) open(p *plan, name []byte) *refusal {
	if p.counters = c.metrics.known(name); p.counters != nil {
		p.name = p.counters.name
	} else {
		p.name = string(name)
	}
	stream, err := c.gate.Open(p.name)
	if err != nil {
		return &refusal{Problem: c.problem(err)}
	}
	p.stream, p.settings = stream, stream.Settings()
	switch {
	case p.settings.Unmade:
		p.counters = c.metrics.stream("")
	case p.counters == nil:
		p.counters = c.metrics.stream(p.name)
	}
	p.limits = p.settings.limits()
	return nil
}

// admit refuses what is known to be too much before it is sent, for us or for the caller's rate.
func (c *core) admit(r *request, p *plan) *refusal {
	if r.length > p.limits.Body {
		return &refusal{Problem: tooLarge(event.BodyTooLarge, "body", p.limits.Body, r.length)}
	}
	if held := c.budget.Held(); held > 0 && held+max(r.length, 0) > c.budget.Limit() {
		return &refusal{Problem: overloaded()}
	}
	if problem := c.begin(p, r); problem != nil {
		return &refusal{Problem: problem}
	}
	return nil
}

func overloaded() *event.Problem {
	return event.Problemf(event.Overloaded, "too many bytes are in flight; send again later")
}

// problem returns the problem that err is; any other error is our own fault and goes into the log.
func (c *core) problem(err error) *event.Problem {
	var p *event.Problem
	if errors.As(err, &p) {
		return p
	}
	c.log.Error("request failed", "error", err)
	return event.Problemf(event.Internal, "an error of the gateway, named in its log")
}
