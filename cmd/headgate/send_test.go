package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// accepted is an answer for n events of which the last ones were filtered, rejected and so on.
func accepted(n int, others ...int) reply {
	var c [4]int
	for i, k := range others {
		c[i] = k
		n -= k
	}
	return reply{status: 200, body: fmt.Sprintf(`{"stream":"s","accepted":%d,"filtered":%d,"rejected":%d,"duplicates":%d,"deadlettered":%d}`,
		n, c[0], c[1], c[2], c[3])}
}

// summaryOf reads the last line on stdout.
func summaryOf(t *testing.T, r result) (s summary) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(r.out, "\n"), "\n")
	d := json.NewDecoder(strings.NewReader(lines[len(lines)-1]))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		t.Fatalf("%v in %q", err, r.out)
	}
	s.Seconds = 0
	return s
}

func TestSendBatchesInOrderAndAddsUp(t *testing.T) {
	s := scripted(t, accepted(2, 1), accepted(2, 0, 0, 1), accepted(1, 0, 0, 0, 1))
	r := command(t, "1\n2\n\n3\n4\n5", "send", "--stream", "s", "--batch", "2", "--ack", "delivered", "-").expect(t, 0)
	if got := summaryOf(t, r); got != (summary{Sent: 5, Accepted: 2, Filtered: 1, Duplicates: 1, DeadLettered: 1}) {
		t.Errorf("%+v", got)
	}
	var bodies []string
	for _, q := range s.requests {
		bodies = append(bodies, q.body)
		if q.method != "POST" || q.path != "/v1/streams/s/events?ack=delivered" || q.header.Get("Content-Type") != "application/x-ndjson" {
			t.Errorf("%+v", q)
		}
	}
	if want := []string{"1\n2\n", "3\n4\n", "5\n"}; !reflect.DeepEqual(bodies, want) {
		t.Errorf("%q", bodies)
	}
}

func TestSendFromAFileOfAnotherType(t *testing.T) {
	s := scripted(t, accepted(2))
	r := command(t, "", "send", "--stream", "a/b", "--type", "application/json", temporary(t, "f.json", "[1,2]")).expect(t, 0)
	if got := summaryOf(t, r); got.Sent != 2 {
		t.Errorf("%+v", got)
	}
	if q := s.requests[0]; q.body != "[1,2]" || q.path != "/v1/streams/a%2Fb/events" || q.header.Get("Content-Type") != "application/json" {
		t.Errorf("%+v", q)
	}
}

func TestSendNothing(t *testing.T) {
	s := scripted(t, accepted(0))
	r := command(t, "\n\n", "send", "--stream", "s", "-").expect(t, 0)
	if got := summaryOf(t, r); got != (summary{}) || len(s.requests) != 0 {
		t.Errorf("%+v, %d requests", got, len(s.requests))
	}
}

func TestE06SendCountsAndNamesRejectedEvents(t *testing.T) {
	answer := accepted(3, 0, 1)
	answer.status = 207
	answer.body = strings.TrimSuffix(answer.body, "}") + `,"errors":[{"index":1,"offset":5,"code":"malformed_json","detail":"no value"}]}`
	scripted(t, answer)
	file := temporary(t, "f.ndjson", "1\n\n{\n2\n")
	r := command(t, "", "send", "--stream", "s", file).expect(t, 1, file+":3: malformed_json: no value\n", "1 of 3 events were rejected")
	if got := summaryOf(t, r); got != (summary{Sent: 3, Accepted: 2, Rejected: 1}) {
		t.Errorf("%+v", got)
	}
}

func TestSendShowsTheFirstRejectedEventsOnly(t *testing.T) {
	var errs []string
	for i := range 20 {
		errs = append(errs, fmt.Sprintf(`{"index":%d,"code":"too_deep","detail":"d"}`, i))
	}
	scripted(t, reply{status: 422, body: `{"status":422,"code":"too_deep","detail":"all","retryable":false,"stream":"s","rejected":20,"errors":[` + strings.Join(errs, ",") + `]}`})
	r := command(t, strings.Repeat("1\n", 40), "send", "--stream", "s", "--batch", "20", "-").expect(t, 1, "40 of 40 events were rejected; only 10 are shown")
	if n := strings.Count(r.stderr, "too_deep"); n != 10 {
		t.Errorf("%d shown: %s", n, r.stderr)
	}
	if got := summaryOf(t, r); got != (summary{Sent: 40, Rejected: 40}) {
		t.Errorf("%+v", got)
	}
}

// Each request has a key of its own, and its repetitions have the same: what was stored is not stored again.
func TestSendNamesItsRequests(t *testing.T) {
	busy := reply{status: 409, body: `{"status":409,"code":"idempotency_in_flight","detail":"because","retryable":true}`}
	s := scripted(t, refused(503, "ack_timeout", `"stored":"unknown"`), busy, accepted(1), accepted(1))
	r := command(t, "1\n2\n", "send", "--stream", "s", "--batch", "1", "-")
	if got := summaryOf(t, r); r.code != 0 || got.Sent != 2 || len(s.requests) != 4 {
		t.Fatalf("%+v, %d requests, exit code %d", got, len(s.requests), r.code)
	}
	var keys []string
	for _, q := range s.requests {
		keys = append(keys, q.header.Get("Idempotency-Key"))
	}
	if keys[0] == "" || keys[0] != keys[1] || keys[0] != keys[2] || keys[3] == "" || keys[3] == keys[0] {
		t.Errorf("keys %q", keys)
	}
}

// TestO05SendRetries walks through all failures that a retry can help, and ends with success.
func TestO05SendRetries(t *testing.T) {
	after := func(r reply, value string) reply {
		r.header = http.Header{"Retry-After": {value}}
		return r
	}
	s := scripted(t, reply{status: 408}, reply{status: 425}, after(reply{status: 429}, "2"), reply{status: 502}, reply{status: 503}, reply{status: 504},
		after(refused(503, "overloaded"), "1"), accepted(1))
	c := &fakeClock{}
	r := commandAt(t.Context(), c, "1\n", "send", "--stream", "s", "-")
	r.expect(t, 0, "trying again", "may store its events twice")
	if got := summaryOf(t, r); got != (summary{Sent: 1, Accepted: 1}) {
		t.Errorf("%+v", got)
	}
	if len(s.requests) != 8 {
		t.Errorf("%d requests", len(s.requests))
	}
	for _, q := range s.requests {
		if q.body != "1\n" {
			t.Errorf("a retry has another body: %q", q.body)
		}
	}
	ms := time.Millisecond
	if want := []time.Duration{50 * ms, 100 * ms, 2200 * ms, 400 * ms, 800 * ms, 1600 * ms, 4200 * ms}; !reflect.DeepEqual(c.waits, want) {
		t.Errorf("waits %v, want %v", c.waits, want)
	}
	if n := strings.Count(r.stderr, "\n"); n != 2 {
		t.Errorf("says it more than once: %s", r.stderr)
	}
}

func TestSendWarnsOfDuplicatesOnlyWhenTheOutcomeIsUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		answer reply
		warns  bool
	}{
		"refused, nothing stored": {refused(503, "overloaded", `"stored":"no"`), false},
		"unknown":                 {refused(503, "ack_timeout", `"stored":"unknown"`), true},
		"broken connection":       {reply{}, true},
		"too many requests":       {reply{status: 429}, false},
	} {
		scripted(t, c.answer, accepted(1))
		r := command(t, "1\n", "send", "--stream", "s", "-").expect(t, 0, "trying again")
		if warns := strings.Contains(r.stderr, "twice"); warns != c.warns {
			t.Errorf("%s: %s", name, r.stderr)
		}
	}
}

func TestSendGivesUp(t *testing.T) {
	s := scripted(t, accepted(1), reply{status: 503})
	c := &fakeClock{}
	r := commandAt(t.Context(), c, "1\n2\n3\n", "send", "--stream", "s", "--batch", "1", "--timeout", "20s", "-").
		expect(t, 1, "stopped before stdin:2: given up after 20s", "503")
	if got := summaryOf(t, r); got != (summary{Sent: 1, Accepted: 1}) {
		t.Errorf("%+v", got)
	}
	var total time.Duration
	for _, w := range c.waits {
		total += w
	}
	if total > 20*time.Second || len(s.requests) < 3 {
		t.Errorf("%d requests, waited %v", len(s.requests), total)
	}
}

func TestSendStopsWhereARetryCannotHelp(t *testing.T) {
	for _, code := range []string{"unknown_stream", "unsupported_media_type", "body_too_large"} {
		s := scripted(t, refused(404, code))
		r := command(t, "1\n2\n", "send", "--stream", "s", "--batch", "1", "-").expect(t, 1, "stopped before stdin:1: "+code+": because")
		if len(s.requests) != 1 || summaryOf(t, r).Sent != 0 {
			t.Errorf("%s: %d requests, %s", code, len(s.requests), r.out)
		}
	}
}

func TestSendToWhatIsNoGateway(t *testing.T) {
	for _, body := range []string{"<html>", "{}", `{"accepted":7}`} {
		scripted(t, reply{status: 200, body: body})
		command(t, "1\n2\n", "send", "--stream", "s", "-").expect(t, 1, "does not answer like a Headgate")
	}
}

func TestSendDoesNotRepeatWhatIsDurable(t *testing.T) {
	s := scripted(t, reply{status: 503, body: `{"status":503,"code":"ack_timeout","detail":"late","retryable":false,"stored":"durable"}`}, accepted(1))
	r := command(t, "1\n2\n", "send", "--stream", "s", "--batch", "1", "--ack", "delivered", "-").
		expect(t, 1, "1 events are stored but not delivered yet; do not send them again")
	if got := summaryOf(t, r); got.Accepted != 2 || len(s.requests) != 2 {
		t.Errorf("%+v, %d requests", got, len(s.requests))
	}
}

// What was refused of a request whose others are durable is counted, saved, and tried again where it can be.
func TestSendSavesWhatIsRefusedBesideWhatIsDurable(t *testing.T) {
	s := scripted(t, reply{status: 503, body: `{"status":503,"code":"ack_timeout","detail":"late","retryable":false,"stored":"durable",` +
		`"accepted":1,"filtered":0,"rejected":2,"duplicates":0,"deadlettered":0,` +
		`"errors":[{"index":0,"code":"malformed_json","detail":"no"},{"index":2,"code":"key_rate","detail":"later","retryable":true}]}`}, accepted(1))
	file := filepath.Join(t.TempDir(), "rejected")
	r := command(t, "x\n2\n3\n", "send", "--stream", "s", "--ack", "delivered", "--rejected", file, "-").
		expect(t, 1, "1 events are stored but not delivered yet", "1 of 3 events were rejected")
	saved, err := os.ReadFile(file)
	if got := summaryOf(t, r); got.Accepted != 2 || got.Rejected != 1 || len(s.requests) != 2 || string(saved) != "x\n" {
		t.Errorf("%+v, %d requests, saved %q, %v", got, len(s.requests), saved, err)
	}
}

// An answer that leaves open what is stored is no outcome, though it names what is refused.
func TestSendTriesAgainWhatIsUnknownBesideWhatIsRefused(t *testing.T) {
	s := scripted(t, reply{status: 503, body: `{"status":503,"code":"ack_timeout","detail":"late","retryable":true,"stored":"unknown",` +
		`"rejected":1,"errors":[{"index":0,"code":"key_rate","detail":"later","retryable":true}]}`}, accepted(2))
	r := commandAt(t.Context(), &fakeClock{}, "1\n2\n", "send", "--stream", "s", "-").expect(t, 0, "it is not known whether")
	if got := summaryOf(t, r); got.Accepted != 2 || len(s.requests) != 2 {
		t.Errorf("%+v, %d requests", got, len(s.requests))
	}
}

func TestSendInterrupted(t *testing.T) {
	scripted(t, reply{status: 503})
	ctx, cancel := context.WithCancel(t.Context())
	r := commandAt(ctx, &fakeClock{then: cancel}, "1\n", "send", "--stream", "s", "-").expect(t, 1, "interrupted")
	if got := summaryOf(t, r); got.Sent != 0 {
		t.Errorf("%+v", got)
	}
}

func TestSendKeepsTheRate(t *testing.T) {
	scripted(t, accepted(1))
	c := &fakeClock{}
	commandAt(t.Context(), c, "1\n2\n3\n", "send", "--stream", "s", "--batch", "1", "--rate", "2", "-").expect(t, 0)
	if want := []time.Duration{500 * time.Millisecond, 500 * time.Millisecond, 500 * time.Millisecond}; !reflect.DeepEqual(c.waits, want) {
		t.Errorf("%v", c.waits)
	}
}

func TestSendReportsAFileThatEndsBadly(t *testing.T) {
	s := scripted(t, accepted(1))
	r := command(t, "\x011\x05ab", "send", "--stream", "s", "--type", "application/vnd.headgate.events", "-").expect(t, 1, "event 2", "ends in the middle")
	if got := summaryOf(t, r); got.Sent != 1 || s.requests[0].body != "\x011" {
		t.Errorf("%+v", got)
	}
}
