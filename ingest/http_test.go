package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/headgate-io/headgate/event"
)

// nothing fails the test when an event was stored.
func (g *gate) nothing() {
	g.t.Helper()
	if got := g.data(); len(got) > 0 {
		g.t.Errorf("%d events are stored, first %q", len(got), got[0])
	}
}

func chunked(target string, header ...string) string {
	return strings.Join(append([]string{"POST " + target + " HTTP/1.1", "Host: x", "Transfer-Encoding: chunked"}, header...), "\r\n") + "\r\n\r\n"
}

// chunks divides body into chunks of n bytes, without the last, empty one.
func chunks(body string, n int) (text string) {
	for len(body) > 0 {
		n = min(n, len(body))
		text += fmt.Sprintf("%x\r\n%s\r\n", n, body[:n])
		body = body[n:]
	}
	return text
}

func TestA01TheAnswerCountsEveryEvent(t *testing.T) {
	verdicts := []event.Verdict{event.Keep, event.Filtered, event.Rejected, event.Duplicate, event.DeadLettered}
	s := &fakeStream{accept: func(_ context.Context, b *event.Batch) error {
		for i := range b.Events {
			if v := verdicts[i%5]; v == event.Rejected {
				b.Reject(i, event.PluginRejected, "no")
			} else {
				b.Events[i].Verdict = v
			}
		}
		return nil
	}}
	g := serve(t, Config{}, s)
	r := g.post("1\n2\n3\n4\n5\n6\n7\n", ndjson).want(t, 207, "")
	for _, part := range []string{`"stream":"s"`, `"accepted":2`, `"filtered":2`, `"rejected":1`, `"duplicates":1`, `"deadlettered":1`, `"ack":"durable"`,
		`"errors":[{"index":2,"offset":4,"code":"plugin_rejected","detail":"no","retryable":false}]`} {
		if !strings.Contains(r.body, part) {
			t.Errorf("no %s in %s", part, r.body)
		}
	}
	if len(r.doc.BatchID) != 26 {
		t.Errorf("batch_id %q", r.doc.BatchID)
	}
	if got := g.data(); !slices.Equal(got, []string{"1", "6"}) {
		t.Errorf("stored %q", got)
	}
}

func TestA01OneVerdictForAll(t *testing.T) {
	for _, c := range []struct {
		name     string
		set      func(b *event.Batch)
		status   int
		code     event.Code
		filtered int
	}{
		{"a dropped", func(b *event.Batch) { b.Events[0].Verdict = event.Filtered }, 200, "", 1},
		{"b rejected", func(b *event.Batch) { b.Reject(0, event.PluginRejected, "no") }, 422, event.PluginRejected, 0},
		{"c trapped", func(b *event.Batch) { b.Reject(0, event.PluginFailed, "no") }, 422, event.PluginFailed, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := serve(t, Config{}, &fakeStream{accept: func(_ context.Context, b *event.Batch) error { c.set(b); return nil }})
			r := g.post(`{"a":1}`, jsonType).want(t, c.status, c.code)
			if r.doc.Filtered != c.filtered || r.doc.Accepted != 0 {
				t.Errorf("got %s", r.body)
			}
			g.nothing()
		})
	}
}

func TestStrictStoresAllOrNothing(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{})
	target := events + "?mode=strict"
	r := g.dial().send(request11(target, "1\n{\n3\n", ndjson)).answer().want(t, 422, event.StrictRejected)
	if len(r.doc.Errors) != 1 || r.doc.Errors[0].Index != 1 || r.Header.Get("Headgate-Rejected") != "1" {
		t.Errorf("got %s", r.body)
	}
	g.nothing()
	g.accept = func(_ context.Context, b *event.Batch) error {
		if !b.Strict {
			t.Error("the batch does not say strict")
		}
		b.Reject(1, event.PluginRejected, "no")
		return event.Problemf(event.StrictRejected, "no")
	}
	r = g.dial().send(request11(target, "1\n2\n", ndjson)).answer().want(t, 422, event.StrictRejected)
	if len(r.doc.Errors) != 1 || r.doc.Errors[0].Code != event.PluginRejected {
		t.Errorf("got %s", r.body)
	}
}

func TestAckLevels(t *testing.T) {
	s := &fakeStream{settings: Settings{AckMin: event.Accepted, AckMax: event.Durable}}
	g := serve(t, Config{}, s)
	for _, c := range []struct {
		target, header string
		status         int
		level          event.Level
	}{
		{events, "", 200, event.Durable},
		{events + "?ack=accepted", "", 202, event.Accepted},
		{events, "Headgate-Ack: accepted", 202, event.Accepted},
		{events + "?ack=durable", "Headgate-Ack: durable", 200, event.Durable},
		{events + "?ack=durable", "Headgate-Ack: accepted", 400, 0},
		{events + "?ack=delivered", "", 400, 0},
		{events + "?ack=maybe", "", 400, 0},
	} {
		header := []string{ndjson}
		if c.header != "" {
			header = append(header, c.header)
		}
		r := g.dial().send(request11(c.target, "1\n", header...)).answer()
		all := g.take()
		if c.status == 400 {
			r.want(t, 400, event.BadParameter)
			continue
		}
		if r.want(t, c.status, ""); len(all) != 1 || all[0].ack != c.level || r.doc.Ack != c.level.String() {
			t.Errorf("%s %s: stored %+v, answer %s", c.target, c.header, all, r.body)
		}
	}
}

func TestRefusedByTheHeader(t *testing.T) {
	s := &fakeStream{settings: Settings{Limits: Limits{Body: 100}}}
	g := serve(t, Config{}, s)
	big := strings.Repeat("1\n", 60)
	for _, c := range []struct {
		name, text string
		status     int
		code       event.Code
		header     string // name: value that the answer has
	}{
		{"path", request11("/v1/streams/s/event", "1", ndjson), 404, event.NotFound, ""},
		{"path below", request11("/v1/streams/s/x/events", "1", ndjson), 404, event.NotFound, ""},
		{"other host in the path", request11("http://y"+events, "1", ndjson), 404, event.NotFound, ""},
		{"stream", request11("/v1/streams/t/events", "1", ndjson), 404, event.UnknownStream, ""},
		{"method", "GET " + events + " HTTP/1.1\r\nHost: x\r\n\r\n", 405, event.MethodNotAllowed, "Allow: POST"},
		{"method in lower case", strings.Replace(request11(events, "1", ndjson), "POST", "post", 1), 405, event.MethodNotAllowed, "Allow: POST"},
		{"charset", request11(events, "1", jsonType+"; charset=latin1"), 415, event.UnsupportedMediaType, "Accept: application/json"},
		{"C08 three codings", request11(events, "1", ndjson, "Content-Encoding: gzip, zstd, br"), 415, event.UnsupportedCoding, "Accept-Encoding: gzip, deflate, zstd, br, snappy"},
		{"C08 unknown coding", request11(events, "1", ndjson, "Content-Encoding: gzip, compress"), 415, event.UnsupportedCoding, "Accept-Encoding: gzip, deflate"},
		{"dry run", request11(events+"?dry_run=maybe", "1", ndjson), 400, event.BadParameter, ""},
		{"parameter twice", request11(events+"?ack=durable&ack=durable", "1", ndjson), 400, event.BadParameter, ""},
		{"mode", request11(events+"?mode=loose", "1", ndjson), 400, event.BadParameter, ""},
		{"idempotency key without an end", request11(events, "1", ndjson, "Idempotency-Key: \"k"), 400, event.BadParameter, ""},
		{"key twice", request11(events, "1", ndjson, "Headgate-Key: a", "Headgate-Key: b"), 400, event.BadParameter, ""},
		{"key too long", request11(events, "1", ndjson, "Headgate-Key: "+strings.Repeat("k", 1025)), 422, event.KeyTooLong, ""},
		{"announced too much", request11(events, big, ndjson), 413, event.BodyTooLarge, ""},
		{"65 fields", request11(events, "1", slices.Repeat([]string{"A: b"}, 63)...), 431, event.HeadersTooLarge, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := g.dial().send(c.text).answer().want(t, c.status, c.code)
			if name, value, _ := strings.Cut(c.header, ": "); name != "" && !strings.HasPrefix(r.Header.Get(name), value) {
				t.Errorf("%s: %q", name, r.Header.Get(name))
			}
			if id := r.Header.Get("X-Request-Id"); id == "" || !strings.Contains(r.body, `"request_id":"`+id+`"`) {
				t.Errorf("X-Request-Id %q, body %s", id, r.body)
			}
			g.nothing()
		})
	}
}

// H09: the final status at once, without 100 Continue, although no byte of the body is ever sent.
func TestH09ExpectContinue(t *testing.T) {
	s := &fakeStream{settings: Settings{Limits: Limits{Body: 100}}}
	g := serve(t, Config{}, s)
	head := func(n int, header ...string) string {
		return strings.Join(append([]string{"POST " + events + " HTTP/1.1", "Host: x", "Expect: 100-continue", "Content-Length: " + strconv.Itoa(n)}, header...), "\r\n") + "\r\n\r\n"
	}
	refused := func(text string, status int, code event.Code) {
		t.Helper()
		c := g.dial().send(text)
		if r := c.answer().want(t, status, code); !r.Close {
			t.Errorf("%d does not say Connection: close", r.StatusCode)
		}
		c.closed()
	}
	refused(head(101, ndjson), 413, event.BodyTooLarge)
	refused(head(5), 415, event.UnsupportedMediaType)
	if !g.budget.Reserve(64 << 20) {
		t.Fatal("budget")
	}
	refused(head(5, ndjson), 503, event.Overloaded)
	g.budget.Release(64 << 20)

	c := g.dial().send(head(2, ndjson))
	if line, err := c.r.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	c.r.ReadString('\n')
	c.send("1\n").answer().want(t, 200, "")
}

// A client's own verdict must not count.
func TestVerdictCannotBeForged(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{})
	g.post("1\n", ndjson, verdictField+`: {"Problem":{"Code":"forbidden"}}`).want(t, 200, "")
	for ticket := range 5 {
		forged := verdictField + ": " + strconv.Itoa(ticket)
		g.post("1\n", ndjson, forged, forged, "Trailer: "+verdictField).want(t, 200, "")
		g.post("1\n", "Content-Type: text/weird", forged, forged, "Trailer: "+verdictField).want(t, 415, event.UnsupportedMediaType)
	}
}

func TestClientThatWritesFirstGetsTheAnswer(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{})
	body := strings.Repeat("x", 10<<20)
	c := g.dial()
	c.send(request11(events, body, "Content-Type: text/weird")).answer().want(t, 415, event.UnsupportedMediaType)
	c.closed()
}

func TestB01OverloadIsAnswered503(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{})
	if !g.budget.Reserve(g.budget.Limit()) {
		t.Fatal("budget")
	}
	r := g.post("1\n", ndjson).want(t, 503, event.Overloaded)
	if after, err := strconv.Atoi(r.Header.Get("Retry-After")); err != nil || after < 1 || after > 5 || r.doc.Stored != "no" || !r.doc.Retryable {
		t.Errorf("Retry-After %q, %s", r.Header.Get("Retry-After"), r.body)
	}
	g.budget.Release(g.budget.Limit())
	g.post("1\n", ndjson).want(t, 200, "")
}

func TestD11EachRequestIsFramedByItsOwnHeader(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{})
	c := g.dial()
	for _, header := range []string{jsonType, rawType, jsonType} {
		c.send(request11(events, "[1,2]", header)).answer().want(t, 200, "")
	}
	if got := g.data(); !slices.Equal(got, []string{"1", "2", "[1,2]", "1", "2"}) {
		t.Errorf("stored %q", got)
	}
}

func TestWhatTheBatchSays(t *testing.T) {
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	s := &fakeStream{}
	g := serve(t, Config{}, s)
	var names []string
	s.accept = func(_ context.Context, b *event.Batch) error {
		names = nil
		for _, h := range b.Headers {
			names = append(names, string(h.Name)+"="+string(h.Value))
		}
		return nil
	}
	r := g.post("1\n", ndjson, "Headgate-Key:", "traceparent: "+trace, "X-Request-ID: r-1", "headgate-SOURCE:  me ", "A: b: c")
	all := g.take()
	if len(all) != 1 || all[0] != (stored{data: "1", producer: "me", trace: trace, hasKey: true, ack: event.Durable}) {
		t.Errorf("stored %+v", all)
	}
	if r.Header.Get("X-Request-Id") != "r-1" || r.Header.Get("Traceparent") != trace {
		t.Errorf("header %v", r.Header)
	}
	if want := "content-length=2"; !slices.Contains(names, want) || !slices.Contains(names, "a=b: c") || names[0] != "host=x" {
		t.Errorf("headers %q", names)
	}
	var state, requestID string
	s.accept = func(_ context.Context, b *event.Batch) error {
		state, requestID = string(b.TraceState), b.RequestID
		return nil
	}
	for _, c := range []struct {
		header []string
		state  string
	}{
		{[]string{"traceparent: " + trace, "tracestate: a=1,b=2", "tracestate: c=3"}, "a=1,b=2,c=3"},
		{[]string{"traceparent: " + trace, "tracestate: " + strings.Repeat("x", 3000)}, ""},
		{[]string{"traceparent: " + trace, "tracestate: a=\xff"}, ""},
		{[]string{"tracestate: a=1"}, ""}, // W3C Trace Context 3.3: nothing without its traceparent
	} {
		r = g.post("1\n", append(c.header, ndjson, "X-Request-Id: r-2")...)
		if state != c.state || r.Header.Get("Tracestate") != c.state || requestID != "r-2" {
			t.Errorf("%q: tracestate %q, echoed %q, request %q", c.header, state, r.Header.Get("Tracestate"), requestID)
		}
	}
	g.take()
	r = g.post("1\n", ndjson, "traceparent: no", "X-Request-Id: a b")
	if requestID != "" {
		t.Errorf("an id that was made here is passed on: %q", requestID)
	}
	if all = g.take(); len(all) != 1 || all[0].trace != "" || all[0].hasKey || all[0].producer != "127.0.0.1" || len(r.Header.Get("X-Request-Id")) != 26 {
		t.Errorf("stored %+v, header %v", all, r.Header)
	}
}

func TestErrorsOfTheStream(t *testing.T) {
	durable := event.Problemf(event.AckTimeout, "late")
	durable.Stored = "durable"
	for _, c := range []struct {
		err    error
		status int
		code   event.Code
		stored string
	}{
		{event.Problemf(event.BackendFull, "full"), 503, event.BackendFull, "no"},
		{durable, 503, event.AckTimeout, "durable"},
		{fmt.Errorf("wait: %w", context.DeadlineExceeded), 503, event.AckTimeout, "unknown"},
		{errors.New("a bug"), 500, event.Internal, ""},
	} {
		g := serve(t, Config{}, &fakeStream{accept: func(context.Context, *event.Batch) error { return c.err }})
		r := g.post("1\n", ndjson).want(t, c.status, c.code)
		if r.doc.Stored != c.stored || strings.Contains(r.body, "a bug") || (r.Header.Get("Retry-After") != "") != (c.status == 503 && c.stored != "durable") {
			t.Errorf("%v: %v %s", c.err, r.Header, r.body)
		}
	}
}

func TestRequestTimeoutReachesTheStream(t *testing.T) {
	g := serve(t, Config{RequestTimeout: time.Millisecond}, &fakeStream{accept: func(ctx context.Context, _ *event.Batch) error {
		<-ctx.Done()
		return ctx.Err()
	}})
	g.post("1\n", ndjson).want(t, 503, event.AckTimeout)
}

func TestF35APanicFailsOneRequest(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{})
	g.accept = func(context.Context, *event.Batch) error { panic("BUG: test") }
	c := g.dial().send(request11(events, "1\n", ndjson))
	if r := c.answer().want(t, 500, event.Internal); !r.Close {
		t.Error("the connection stays open")
	}
	c.closed()
	g.accept = nil
	g.post("1\n", ndjson).want(t, 200, "")
}

func TestF35APanicBeforeTheBody(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{})
	c := g.dial().send(request11("/v1/streams/panics/events", "1\n", ndjson))
	c.answer().want(t, 500, event.Internal)
	c.closed()
	g.post("1\n", ndjson).want(t, 200, "")
}

func TestMetricsCount(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{})
	g.post("1\n{\n", ndjson).want(t, 207, "")
	g.post("1", "Content-Type: text/weird").want(t, 415, event.UnsupportedMediaType)
	for i := range 3 {
		g.dial().send(request11(fmt.Sprintf("/v1/streams/none%d/events", i), "1", ndjson)).answer()
	}
	err := testutil.GatherAndCompare(g.metrics, strings.NewReader(`
# HELP headgate_http_requests_total Requests answered, by route, method and status.
# TYPE headgate_http_requests_total counter
headgate_http_requests_total{code="207",method="POST",route="events"} 1
headgate_http_requests_total{code="415",method="POST",route="events"} 1
headgate_http_requests_total{code="404",method="POST",route="events"} 3
# HELP headgate_ingest_rejected_total Requests and single events refused, by code; code other: events beyond the first 100 of a request.
# TYPE headgate_ingest_rejected_total counter
headgate_ingest_rejected_total{code="malformed_json",stream="s"} 1
headgate_ingest_rejected_total{code="unsupported_media_type",stream="s"} 1
headgate_ingest_rejected_total{code="unknown_stream",stream="other"} 3
# HELP headgate_ingest_bytes_total Bytes of bodies: wire as sent, inflated without content coding.
# TYPE headgate_ingest_bytes_total counter
headgate_ingest_bytes_total{kind="wire",stream="s"} 4
headgate_ingest_bytes_total{kind="inflated",stream="s"} 4
headgate_ingest_bytes_total{kind="wire",stream="other"} 0
headgate_ingest_bytes_total{kind="inflated",stream="other"} 0
`), "headgate_http_requests_total", "headgate_ingest_rejected_total", "headgate_ingest_bytes_total")
	if err != nil {
		t.Error(err)
	}
}
