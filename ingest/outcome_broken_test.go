package ingest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/event"
)

// What was refused is told whatever becomes of the others, and to a repetition too.
func TestRefusedEventsAreToldWhenTheOthersAreLate(t *testing.T) {
	for _, stored := range []event.Stored{event.StoredDurable, event.StoredUnknown} {
		s := &fakeStream{accept: func(_ context.Context, b *event.Batch) error {
			b.Reject(2, event.KeyRate, "too many")
			b.Events[3].Verdict = event.Filtered
			return &event.Problem{Code: event.AckTimeout, Stored: stored, Detail: "late; do it"}
		}}
		g := serve(t, Config{}, s, remembering(100, time.Minute))
		const body = "{}\n{bad\n{}\n{}\n{}\n"
		first := g.post(body, ndjson, "Idempotency-Key: a").want(t, 503, event.AckTimeout)
		parts := []string{`"rejected":2`, `"index":1,"offset":4,"code":"malformed_json"`, `"index":2,"offset":8,"code":"key_rate"`, `"stream":"s"`,
			`"stored":"` + string(stored) + `"`, `"detail":"2 of 5 events are refused, see errors; this holds for the others: late; do it"`}
		durable := stored == event.StoredDurable
		if durable {
			parts = append(parts, `"accepted":2,"filtered":1,"rejected":2,"duplicates":0,"deadlettered":0,"ack":"durable"`, `"retryable":false,"request_id"`)
		}
		for _, part := range parts {
			if !strings.Contains(first.body, part) {
				t.Errorf("%s: no %s in %s", stored, part, first.body)
			}
		}
		if first.Header.Get("Headgate-Rejected") != "2" || (first.Header.Get("Retry-After") == "") != durable {
			t.Errorf("%s: %v", stored, first.Header)
		}
		if !durable {
			continue
		}
		again := g.post(body, ndjson, "Idempotency-Key: a").want(t, 503, event.AckTimeout)
		if h := again.Header; again.body != first.body || h.Get("Headgate-Rejected") != "2" || h.Get("Retry-After") != "" || h.Get("Idempotency-Replayed") != "true" {
			t.Errorf("again: %v %s", h, again.body)
		}
	}
}
