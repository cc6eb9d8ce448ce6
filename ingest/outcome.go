package ingest

import (
	"fmt"
	"strconv"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/problem"
	"github.com/headgate-io/headgate/internal/requestid"
)

// errorList names the refused events, at most event.MaxErrors.
type errorList struct {
	Errors    []eventError `json:"errors,omitempty"`
	Truncated bool         `json:"errors_truncated,omitempty"`
}

type eventError struct {
	Index     int        `json:"index"`  // in the request, blank lines not counted
	Offset    int        `json:"offset"` // byte in the decoded body
	Code      event.Code `json:"code"`
	Detail    string     `json:"detail"`
	Retryable bool       `json:"retryable"`
}

// refusedDocument is a problem that consists of refused events.
type refusedDocument struct {
	problem.Document
	Stream   string `json:"stream"`
	Rejected int    `json:"rejected"`
	errorList
}

// outcome is the answer to a request whose events were looked at one by one; ended is what ended it, nil if nothing.
func (c *core) outcome(r *request, p *plan, b *event.Batch, ended *event.Problem) answer {
	counts, m := b.Counts(), p.counters
	if ended != nil && !ofItsEvents(ended) {
		return c.brokenOff(r, p, b, ended)
	}
	m.errors(b.Errors, counts.Rejected)
	if ended != nil {
		m.refused(ended.Code, 1)
		return refusedEvents(p, b, problem.Describe(ended, p.who.request))
	}
	m.count(counts)
	if counts.Rejected > 0 && counts.Rejected == len(b.Events) {
		return refusedEvents(p, b, p.blame(b))
	}
	a := answer{status: 200, mediaType: "application/json"}
	if b.Ack == event.Accepted {
		a.status = 202
	}
	if counts.Rejected > 0 {
		a.status, a.retry = 207, b.RetryAfter
		a.add("Headgate-Rejected", strconv.Itoa(counts.Rejected))
	}
	a.doc = appendSummary(r.room[:0], b, counts)
	a.finish(p.who)
	return a
}

// ofItsEvents tells that a request that is stored whole or not at all ended for what its events are, or for their keys, which
// are over their rate: then errors names these.
func ofItsEvents(ended *event.Problem) bool {
	return ended.Code == event.StrictRejected || ended.Code == event.KeyRate
}

// appendSummary appends the body of an answer that says what became of each event: the five counts add up to the events
// that came.
func appendSummary(dst []byte, b *event.Batch, n event.Counts) []byte {
	dst = append(dst, `{"stream":`...)
	dst = appendText(dst, b.Stream)
	dst = strconv.AppendInt(append(dst, `,"accepted":`...), int64(n.Accepted), 10)
	dst = strconv.AppendInt(append(dst, `,"filtered":`...), int64(n.Filtered), 10)
	dst = strconv.AppendInt(append(dst, `,"rejected":`...), int64(n.Rejected), 10)
	dst = strconv.AppendInt(append(dst, `,"duplicates":`...), int64(n.Duplicates), 10)
	dst = strconv.AppendInt(append(dst, `,"deadlettered":`...), int64(n.DeadLettered), 10)
	dst = append(append(dst, `,"ack":"`...), b.Ack.String()...)
	dst = append(append(dst, `","batch_id":"`...), b.ID...)
	dst = append(dst, '"')
	if b.Chain != "" {
		dst = append(append(append(dst, `,"chain":"`...), b.Chain...), '"')
	}
	if n.DeadLettered > 0 {
		dst = appendSetAside(append(dst, `,"deadletters":[`...), b)
	}
	if len(b.Errors) > 0 {
		list := problem.Marshal(listErrors(b, n.Rejected))
		dst = append(append(dst, ','), list[1:len(list)-1]...)
	}
	return append(dst, '}')
}

// appendSetAside appends the places of the first events that were set aside, and ends the list.
func appendSetAside(dst []byte, b *event.Batch) []byte {
	for i, named := 0, 0; i < len(b.Events) && named < event.MaxErrors; i++ {
		if b.Events[i].Verdict != event.DeadLettered {
			continue
		}
		if named++; named > 1 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, int64(i), 10)
	}
	return append(dst, ']')
}

// appendText appends a JSON string.
func appendText(dst []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return append(dst, problem.Marshal(text)...)
		}
	}
	dst = append(append(dst, '"'), text...)
	return append(dst, '"')
}

// refused is the answer to a request that is refused as a whole.
func (c *core) refused(no *refusal, who identity) (a answer) {
	if who.request == "" {
		who.request = requestid.New(time.Now())
	}
	c.metrics.stream(no.Stream).refused(no.Problem.Code, 1)
	a.mediaType = problem.MediaType
	a.status, _, a.doc = problem.Render(no.Problem, who.request)
	a.unknown, a.safe = no.Problem.Stored == event.StoredUnknown, no.Problem.Stored == event.StoredDurable
	a.add(no.Name, no.Value)
	a.retry = no.Problem.RetryAfter
	a.finish(who)
	return a
}

// refusedEvents is the answer when nothing is stored because of refused events.
func refusedEvents(p *plan, b *event.Batch, d problem.Document) answer {
	a := answer{status: d.Status, mediaType: problem.MediaType, retry: b.RetryAfter}
	rejected := b.Counts().Rejected
	a.add("Headgate-Rejected", strconv.Itoa(rejected))
	a.doc = problem.Marshal(refusedDocument{d, p.name, rejected, listErrors(b, rejected)})
	a.finish(p.who)
	return a
}

// finish adds the fields that every answer has, or every one of its status.
func (a *answer) finish(who identity) {
	a.add("X-Request-Id", who.request)
	a.add("Traceparent", string(who.trace))
	a.add("Tracestate", string(who.state))
	if a.status == 429 || a.status == 503 && !a.safe || a.status == 207 && a.retry > 0 {
		a.add("Retry-After", retryAfter(a.retry))
	}
}

// blame describes a batch of which every event is refused. Its status is that of the events' codes: 400 when all failed
// framing or syntax, 413 when all were too large, and 422 when they differ.
func (p *plan) blame(b *event.Batch) problem.Document {
	e, status := b.Errors[0], statusOf(b.Errors[0].Code)
	for _, next := range b.Errors[1:] {
		s := statusOf(next.Code)
		if s != status {
			status = 422
		}
		if s == 422 && statusOf(e.Code) != 422 {
			e = next
		}
	}
	whole := &event.Problem{Code: e.Code, Detail: e.Detail}
	if len(b.Events) > 1 {
		whole.Detail = fmt.Sprintf("all %d events are refused, see errors; %s", len(b.Events), e.Detail)
	}
	if e.Code == event.EventTooLarge {
		whole.Scope, whole.Limit, whole.Observed = "event", p.limits.Event, int64(len(b.Events[e.Index].Data))
	}
	d := problem.Describe(whole, p.who.request)
	if d.Status != status {
		d.Status, d.Title = status, "Unprocessable Entity"
	}
	return d
}

func statusOf(code event.Code) int {
	kind, ok := problem.Of(code)
	if !ok {
		return 500
	}
	return kind.Status
}

func listErrors(b *event.Batch, rejected int) (l errorList) {
	if len(b.Errors) == 0 {
		return l
	}
	l.Errors = make([]eventError, len(b.Errors))
	for i, e := range b.Errors {
		kind, _ := problem.Of(e.Code)
		l.Errors[i] = eventError{e.Index, e.Offset, e.Code, e.Detail, kind.Retryable}
	}
	l.Truncated = rejected > len(b.Errors)
	return l
}
