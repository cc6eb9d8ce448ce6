package ingest

import (
	"fmt"
	"strconv"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/problem"
)

// brokenOff is the answer to a request that ended otherwise than was asked. What of it was refused is told whatever became
// of the others: nobody tries that again.
func (c *core) brokenOff(r *request, p *plan, b *event.Batch, ended *event.Problem) answer {
	counts, m := b.Counts(), p.counters
	switch {
	case ended.Stored == event.StoredDurable:
		return c.late503(r, p, b, ended)
	case ended.Stored != event.StoredUnknown || counts.Rejected == 0:
		return c.refused(&refusal{Problem: ended, Stream: m.name}, p.who)
	}
	m.errors(b.Errors, counts.Rejected)
	m.refused(ended.Code, 1)
	a := refusedEvents(p, b, problem.Describe(ofOthers(ended, counts.Rejected, len(b.Events)), p.who.request))
	a.unknown = true
	return a
}

// late503 is the answer when the events are durable and that was not asked: what an answer without failure says, in a problem.
func (c *core) late503(r *request, p *plan, b *event.Batch, ended *event.Problem) answer {
	counts, m := b.Counts(), p.counters
	m.errors(b.Errors, counts.Rejected)
	m.refused(ended.Code, 1)
	m.count(counts)
	if counts.Rejected > 0 {
		ended = ofOthers(ended, counts.Rejected, len(b.Events))
	}
	d := problem.Describe(ended, p.who.request)
	a := answer{status: d.Status, mediaType: problem.MediaType, retry: b.RetryAfter, safe: true}
	if counts.Rejected > 0 {
		a.add("Headgate-Rejected", strconv.Itoa(counts.Rejected))
	}
	head := problem.Marshal(d)
	b.Ack = event.Durable // so far they have come
	start := len(head) - 1
	a.doc = appendSummary(append(append(r.room[:0], head[:start]...), ','), b, counts)
	a.doc = append(a.doc[:start+1], a.doc[start+2:]...) // the brace of the summary
	a.finish(p.who)
	return a
}

// ofOthers says of a problem that it is about the events that were not refused.
func ofOthers(ended *event.Problem, rejected, all int) *event.Problem {
	of := *ended
	of.Detail = fmt.Sprintf("%d of %d events are refused, see errors; this holds for the others: %s", rejected, all, ended.Detail)
	return &of
}
