package gateway

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/gateway/config"
	"github.com/headgate-io/headgate/ingest"
	"github.com/headgate-io/headgate/internal/settings"
)

// hour is a burst in which, within a test, nothing comes back: what a bucket holds is all there is.
const hour = settings.Duration(time.Hour)

// few is a rate whose bucket holds n events. One that is full takes most of an hour for it, so that it does not matter to a test how
// long its requests take.
func few(n float64) config.Rate {
	a := max((n+0.01)/3600, 0.001) // lower is no rate
	return config.Rate{Events: a, Burst: settings.Duration((n + 0.01) / a * float64(time.Second))}
}

// lines returns n events with the key.
func lines(key string, n int) string { return strings.Repeat(fmt.Sprintf("{\"k\":%q}\n", key), n) }

// TestK12KeyOverItsRate: 30 events a second, saved up for 5 s; A has used 120 of its 150.
func TestK12KeyOverItsRate(t *testing.T) {
	k := newKeyRate("web", config.StreamRate{Key: config.Rate{Events: 30, Burst: settings.Duration(5 * time.Second)}}, newRateMetrics(prometheus.NewRegistry()))
	now := time.Now()
	batch := func(keys ...string) *event.Batch {
		b := &event.Batch{}
		for i, key := range keys {
			b.Events = append(b.Events, event.Event{Data: []byte("{}"), Key: []byte(key), HasKey: true, Offset: 3 * i})
		}
		return b
	}
	var mixed []string
	for range 100 {
		mixed = append(mixed, "A", "B")
	}
	k.apply(batch(make([]string, 150)...), now) // the empty key is a key like any other
	for range 120 {
		k.apply(batch("A"), now)
	}
	b := batch(mixed...)
	k.apply(b, now)
	for i := range b.Events {
		want := event.Keep
		if i%2 == 0 && i/2 >= 30 {
			want = event.Rejected
		}
		if got := b.Events[i].Verdict; got != want {
			t.Fatalf("event %d of key %s is %v, want %v", i/2, b.Events[i].Key, got, want)
		}
	}
	if e := b.Errors[0]; e.Code != event.KeyRate || e.Index != 60 || e.Offset != 180 || !strings.Contains(e.Detail, "30 events a second") {
		t.Errorf("%+v", e)
	}
	if b.RetryAfter <= 0 || b.RetryAfter > time.Second/30+1 {
		t.Errorf("RetryAfter %v: the next comes in a thirtieth of a second", b.RetryAfter)
	}
	later := batch("A", "A", "A", "A")
	k.apply(later, now.Add(100*time.Millisecond)) // three have come
	if c := later.Counts(); c.Accepted != 3 || c.Rejected != 1 {
		t.Errorf("100 ms later %+v", c)
	}
	keyless := &event.Batch{Events: make([]event.Event, 1000)}
	if k.apply(keyless, now); keyless.Counts().Accepted != 1000 {
		t.Error("events without a key have a rate")
	}
}

// TestK12OverHTTP is the same as a producer sees it.
func TestK12OverHTTP(t *testing.T) {
	cfg := zero(t)
	cfg.Streams = map[string]config.Stream{"web": {Key: config.Key{JSON: "/k"}, Rate: config.StreamRate{Key: few(100)}}}
	in := start(t, cfg)
	defer in.end()
	in.want(200, `"accepted":70`, "web", lines("A", 70))
	status, doc := in.post("web", lines("A", 100)+lines("B", 100))
	var answer struct {
		Accepted, Rejected int
		Errors             []struct {
			Index     int
			Code      string
			Retryable bool
		}
	}
	if err := json.Unmarshal([]byte(doc), &answer); err != nil || status != 207 {
		t.Fatalf("%d %s %v", status, doc, err)
	}
	got := answer.Accepted - 130 // what came back in the meantime
	if got < 0 || got > 30 || answer.Rejected != 70-got {
		t.Errorf("%d accepted, %d rejected, want 130 and 70", answer.Accepted, answer.Rejected)
	}
	for i, e := range answer.Errors {
		if e.Code != "key_rate" || !e.Retryable || e.Index != 30+got+i {
			t.Errorf("error %d: %+v", i, e)
		}
	}
	stored := map[string]int{}
	for _, r := range in.rows("web") {
		stored[string(r.Key)]++
	}
	if stored["A"] != 100+got || stored["B"] != 100 {
		t.Errorf("stored %v", stored)
	}
	if _, doc := in.ask("", "GET", "/metrics", ""); !strings.Contains(doc, fmt.Sprintf(`headgate_key_rate_events_total{stream="web"} %d`, 70-got)) ||
		!strings.Contains(doc, `headgate_ingest_rejected_total{code="key_rate",stream="web"}`) {
		t.Error("the metrics do not count it")
	}
}

// TestB10WhoIsToBlame: (a) a caller, (b) a key, (c) the gateway.
func TestB10WhoIsToBlame(t *testing.T) {
	cfg := zero(t)
	cfg.Streams = map[string]config.Stream{"web": {Key: config.Key{JSON: "/k"}, Rate: config.StreamRate{Key: few(5)}}}
	cfg.Rates.Caller = few(20)
	in := start(t, cfg)
	defer in.end()
	in.want(207, `"code":"key_rate"`, "web", lines("A", 8)+lines("B", 3))
	in.want(429, `"code":"key_rate"`, "web", lines("A", 1))
	in.want(429, `"code":"caller_rate"`, "web", lines("C", 20))
	if stored := len(in.rows("web")); stored != 8 {
		t.Errorf("%d events are stored, want 5 of A and 3 of B", stored)
	}
	if !in.bodies.Reserve(in.bodies.Limit()) {
		t.Fatal("budget")
	}
	in.want(503, `"code":"overloaded"`, "web", lines("D", 1))
	in.bodies.Release(in.bodies.Limit())
	in.want(200, `"accepted":1`, "web", lines("D", 1))
}

// TestB03CallersDoNotShareARate: X sends ten times what it may, Y just what it may.
func TestB03CallersDoNotShareARate(t *testing.T) {
	cfg := zero(t)
	for _, id := range []string{"x", "y", "z"} {
		cfg.Auth = &config.Auth{Tokens: append(tokensOf(cfg), config.Token{ID: id, Secret: secretRef(t, "of-"+id), Streams: []string{"*"}, Actions: []string{"send"}})}
	}
	cfg.Rates.Caller = config.Rate{Events: 1, Burst: hour} // 3600
	cfg.Rates.Callers = map[string]config.Rate{"z": {}}    // as much as it likes
	in := start(t, cfg)
	defer in.end()
	const requests, events = 36, 100
	answers := map[string]map[int]int{"x": {}, "y": {}, "z": {}}
	var all sync.WaitGroup
	for id, factor := range map[string]int{"x": 10, "y": 1, "z": 2} {
		all.Go(func() {
			for range requests * factor {
				status, _ := in.ask("of-"+id, "POST", "/v1/streams/web/events", strings.Repeat("{}\n", events))
				answers[id][status]++
			}
		})
	}
	all.Wait()
	if y := answers["y"]; y[200] != requests || len(y) != 1 {
		t.Errorf("Y within its rate: %v", y)
	}
	if z := answers["z"]; z[200] != 2*requests || len(z) != 1 {
		t.Errorf("Z without a rate: %v", z)
	}
	if x := answers["x"]; x[200] < requests || x[200] > requests+1 || x[200]+x[429] != 10*requests { // one more when 100 s pass
		t.Errorf("X over its rate: %v", x)
	}
}

func tokensOf(cfg config.Config) []config.Token {
	if cfg.Auth == nil {
		return nil
	}
	return cfg.Auth.Tokens
}

// TestQ03NoCallerAndNoKeyIsALabel: neither tokens nor addresses nor keys, whatever becomes of them.
func TestQ03NoCallerAndNoKeyIsALabel(t *testing.T) {
	cfg := zero(t)
	cfg.Auth = &config.Auth{Tokens: []config.Token{{ID: "tenant-4711", Secret: secretRef(t, "of-tenant"), Streams: []string{"*"}, Actions: []string{"send"}}}}
	cfg.Rates.Caller = few(30)
	cfg.Streams = map[string]config.Stream{"web": {Key: config.Key{JSON: "/k"}, Rate: config.StreamRate{Key: few(5)}}}
	in := start(t, cfg)
	defer in.end()
	for _, status := range []int{207, 429, 401} {
		token := "of-tenant"
		if status == 401 {
			token = "stranger-0815"
		}
		if got, doc := in.ask(token, "POST", "/v1/streams/web/events", lines("key-1234", 20)); got != status {
			t.Errorf("%d %s, want %d", got, doc, status)
		}
	}
	_, metrics := in.ask("", "GET", "/metrics", "")
	for _, text := range []string{"tenant-4711", "of-tenant", "stranger-0815", "key-1234", "127.0.0.1"} { // a number alone can be that of a metric
		if strings.Contains(metrics, text) {
			t.Errorf("the metrics contain %s", text)
		}
	}
	for _, series := range []string{`headgate_key_rate_events_total{stream="web"} 15`, `headgate_ingest_rejected_total{code="caller_rate",stream="web"} 1`,
		`headgate_ingest_rejected_total{code="unauthorized",stream="other"} 1`} {
		if !strings.Contains(metrics, series) {
			t.Errorf("no %s", series)
		}
	}
}

func TestRetryAfterIsTrue(t *testing.T) {
	cfg := zero(t)
	cfg.Rates.Caller = config.Rate{Bytes: 1, Burst: hour}
	in := start(t, cfg)
	defer in.end()
	began := time.Now()
	in.want(200, "accepted", "web", `"`+strings.Repeat("x", 3598)+`"`)
	resp, _ := in.do("POST", in.events("web"), `"`+strings.Repeat("x", 98)+`"`, "Content-Type: application/x-ndjson")
	after, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	passed := int(time.Since(began)/time.Second) + 1
	if resp.StatusCode != 429 || err != nil || after < 100-passed || after > 100+100/4+2 { // 100 bytes come in 100 s, of which some have passed
		t.Errorf("%d, Retry-After %q, %d s after the first", resp.StatusCode, resp.Header.Get("Retry-After"), passed)
	}
}

func TestCallersByAddress(t *testing.T) {
	cfg := zero(t)
	cfg.Rates.Caller = config.Rate{Events: 1, Burst: hour}
	c := newCallers(&cfg, newRateMetrics(prometheus.NewRegistry()))
	now := time.Now()
	take := func(address string, n int) bool {
		return c.Take(ingest.Caller{Addr: netip.MustParseAddr(address)}, ingest.Load{Events: n}, now) == 0
	}
	for _, s := range []struct {
		address string
		n       int
		granted bool
	}{
		{"10.0.0.1", 3600, true},
		{"10.0.0.1", 1, false},
		{"::ffff:10.0.0.1", 1, false},
		{"10.0.0.2", 3600, true},
		{"2001:db8:1:2::1", 3600, true},
		{"2001:db8:1:2:ffff::", 1, false}, // the same network
		{"2001:db8:1:3::1", 3600, true},
		{"a00:1::", 1, true}, // the same first bytes as 10.0.0.1
	} {
		if got := take(s.address, s.n); got != s.granted {
			t.Errorf("%s takes %d: %v, want %v", s.address, s.n, got, s.granted)
		}
	}
}

// TestRatesAreFreeWhenOff: nobody is asked, and a stream has no table.
func TestRatesAreFreeWhenOff(t *testing.T) {
	m := newRateMetrics(prometheus.NewRegistry())
	cfg := zero(t)
	if newCallers(&cfg, m) != nil || newKeyRate("web", config.StreamRate{Keys: 100}, m) != nil {
		t.Error("without a rate there is something to ask")
	}
}

func TestKeyRateAllocatesNothing(t *testing.T) {
	k := newKeyRate("web", config.StreamRate{Key: config.Rate{Events: 1000, Bytes: 1 << 20}}, newRateMetrics(prometheus.NewRegistry()))
	b := &event.Batch{Events: make([]event.Event, 500)}
	for i := range b.Events {
		b.Events[i] = event.Event{Data: make([]byte, 200), Key: fmt.Append(nil, i), HasKey: true}
	}
	now := time.Now()
	if n := testing.AllocsPerRun(100, func() {
		now = now.Add(time.Second)
		k.apply(b, now)
	}); n > 0 || b.Counts().Accepted != 500 {
		t.Errorf("%v allocations, %+v", n, b.Counts())
	}
}

// TestKeyRateChangesLive: a new rate begins with full buckets, another change of the definition keeps them.
func TestKeyRateChangesLive(t *testing.T) {
	in := start(t, zero(t))
	defer in.end()
	set := func(doc string) {
		t.Helper()
		if _, _, err := in.SetStream(t.Context(), "web", json.RawMessage(doc), admin.Match{}); err != nil {
			t.Fatal(err)
		}
	}
	set(`{"key":{"json":"/k"}}`)
	in.want(200, `"accepted":50`, "web", lines("A", 50))
	set(`{"key":{"json":"/k"},"rate":{"key":{"events":0.0028,"burst":"1h"}}}`)
	in.want(207, `"accepted":10`, "web", lines("A", 40))
	set(`{"key":{"json":"/k"},"rate":{"key":{"events":0.0028,"burst":"1h"}},"limits":{"events":1000}}`)
	in.want(429, `key_rate`, "web", lines("A", 40))
	set(`{"key":{"json":"/k"},"rate":{"key":{"events":0.0056,"burst":"1h"}}}`)
	in.want(207, `"accepted":20`, "web", lines("A", 40))
	set(`{"key":{"json":"/k"}}`)
	in.want(200, `"accepted":40`, "web", lines("A", 40))
	_, _, err := in.SetStream(t.Context(), "web", json.RawMessage(`{"rate":{"key":{"event":1}}}`), admin.Match{})
	wantCode(t, err, event.BadConfiguration)
}
