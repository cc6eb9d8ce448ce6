package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/gateway/config"
	"github.com/headgate-io/headgate/internal/rate"
	"github.com/headgate-io/headgate/internal/settings"
	"github.com/headgate-io/headgate/partitioner"
)

// hotKeys are the heaviest keys as the admin API gives them.
func (in *instance) hotKeys(stream string) (h shownHotKeys) {
	in.t.Helper()
	doc, err := in.HotKeys(in.t.Context(), stream)
	if err == nil {
		err = json.Unmarshal(doc, &h)
	}
	if err != nil {
		in.t.Fatal(err)
	}
	return h
}

// happened waits for a change in the history of a stream.
func (in *instance) happened(stream, kind string) (found happening) {
	in.t.Helper()
	in.untilTable(stream, kind, func(table shownTable) bool {
		at := slices.IndexFunc(table.History, func(h happening) bool { return h.Kind == kind })
		if at >= 0 {
			found = table.History[at]
		}
		return at >= 0
	})
	return found
}

// A key whose order keeps it in one partition, and which brings more than that is meant to take, is refused the rest; other keys
// of the same requests are taken, what is taken of it is in order, and the limit goes when it is not needed.
func TestStrictKeyIsLimitedToItsPartition(t *testing.T) {
	cfg := zero(t)
	cfg.Streams = map[string]config.Stream{"web": {Key: config.Key{JSON: "/key"}, Partitions: config.Partitions{Min: 2, Max: 2, Target: 64 << 10},
		Adaptive: config.Adaptive{Hold: settings.Duration(time.Second)}}}
	in := start(t, cfg)
	defer in.end()
	pad, n, hot, cold, refused := strings.Repeat("x", 900), 0, 0, 0, 0
	send := func(others int) (*http.Response, string) { // one key is hot, and each of the others has a fortieth at most
		body := ""
		for i := range 40 {
			key := "hot"
			if i%2 < others { // 0, 2, 4, ...
				key = fmt.Sprint("cold", i)
			}
			body += fmt.Sprintf(`{"key":%q,"n":%d,"pad":%q}`+"\n", key, n, pad)
			n++
		}
		return in.do("POST", in.events("web"), body, "Content-Type: application/x-ndjson", "Headgate-Ordering: strict")
	}
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		in.happened("web", "limit")
	}()
	turn := time.NewTicker(50 * time.Millisecond)
	defer turn.Stop()
	for limited := 0; limited < 5; <-turn.C {
		resp, doc := send(1)
		var a struct {
			Accepted int
			Errors   []struct {
				Index        int
				Code, Detail string
				Retryable    bool
			}
		}
		if err := json.Unmarshal([]byte(doc), &a); err != nil {
			t.Fatal(doc)
		}
		hot, cold, refused = hot+20-len(a.Errors), cold+20, refused+len(a.Errors)
		if len(a.Errors) == 0 && resp.StatusCode == 200 {
			continue
		}
		limited++
		if resp.StatusCode != 207 || resp.Header.Get("Retry-After") == "" || a.Accepted+len(a.Errors) != 40 {
			t.Fatalf("%d %v %s", resp.StatusCode, resp.Header, doc)
		}
		for i, e := range a.Errors {
			if e.Index != 41-2*len(a.Errors)+2*i || e.Code != "key_rate" || !e.Retryable || !strings.Contains(e.Detail, "more than one partition takes (64KiB a second)") {
				t.Fatalf("%+v", a.Errors)
			}
		}
	}
	<-stop
	turn.Reset(250 * time.Millisecond)
	for status := 0; status != 200; <-turn.C { // a full bucket gives more than it holds, and owes it for seconds
		large := fmt.Sprintf(`{"key":"hot","n":%d,"pad":%q}`, n, strings.Repeat("x", 512<<10))
		resp, _ := in.do("POST", in.events("web"), large, "Content-Type: application/x-ndjson", "Headgate-Ordering: strict")
		status, n = resp.StatusCode, n+1
	}
	resp, doc := send(0)
	if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" || !strings.Contains(doc, `"key_rate"`) {
		t.Errorf("%d %v %s", resp.StatusCode, resp.Header, doc)
	}
	if h := in.happened("web", "limit"); h.Limit != 64<<10 || h.Key == nil || *h.Key != "hot" || !strings.Contains(h.Reason, "is meant to take 65536/s") {
		t.Errorf("%+v", h)
	}
	if k := in.hotKeys("web").Keys; len(k) == 0 || k[0].State != "limited" || k[0].Limit != 64<<10 || k[0].Order != "strict" {
		t.Errorf("%+v", k)
	}
	in.happened("web", "unlimit")
	if resp, doc := send(0); resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, doc)
	}
	last, stored := -1, 0
	for _, row := range in.rows("web") {
		var e struct {
			Key string
			N   int
		}
		if err := json.Unmarshal(row.Data, &e); err != nil {
			t.Fatal(err)
		}
		if e.Key != "hot" {
			cold--
			continue
		}
		if stored++; e.N <= last {
			t.Errorf("%d follows %d", e.N, last)
		}
		last = e.N
	}
	if cold != 0 || stored < hot || refused == 0 {
		t.Errorf("cold %d, hot %d of at least %d, %d refused", cold, stored, hot, refused)
	}
}

// A stream whose table is not looked after any more keeps no limit for ever.
func TestLimitsEndWithAdaptiveOff(t *testing.T) {
	cfg := zero(t)
	cfg.Streams = nil
	in := start(t, cfg)
	defer in.end()
	put := func(off bool) {
		doc := fmt.Sprintf(`{"key":{"json":"/key"},"adaptive":{"off":%v}}`, off)
		if _, _, err := in.SetStream(t.Context(), "web", json.RawMessage(doc), admin.Match{}); err != nil {
			t.Fatal(err)
		}
	}
	put(false)
	s := (*in.streams.Load())["web"]
	in.until("a key is limited", func() bool {
		s.adaptive.turn.Lock()
		defer s.adaptive.turn.Unlock()
		if s.adaptive.planner == nil { // it takes over the definition, and no limits
			return false
		}
		table := s.partitioner.Table()
		hi, lo := table.KeyHash(event.AsStream, []byte("hot"))
		s.adaptive.limit(table, []partitioner.Limit{{Hi: hi, Lo: lo, Rate: 1}})
		return s.limits.Load().count() == 1
	})
	put(true)
	in.until("no key is limited", func() bool { return s.limits.Load().count() == 0 })
}

// What the limit of a heavy key refuses does not spend its rate: the rest of that is there for what is sent next.
func TestRefusedByItsLimitAKeySpendsNoRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // no time passes
		table := equalTable(t, 2)
		none := prometheus.NewCounter(prometheus.CounterOpts{Name: "none"})
		hot, now := []byte("hot"), time.Now()
		hi, lo := table.KeyHash(event.AsStream, hot)
		w := pacing{table: table,
			keys: &keyRate{limit: rate.Limit{Events: 5, Burst: time.Second}, buckets: rate.NewTable(16, now, none.Inc), refused: none},
			limits: &keyLimits{buckets: rate.NewTable(16, now, none.Inc), refused: none, all: map[[2]uint64]*keyLimit{
				{hi, lo}: newKeyLimit(partitioner.Limit{Hi: hi, Lo: lo, Rate: 100})}}}
		b := &event.Batch{}
		for range 4 {
			b.Events = append(b.Events, event.Event{Key: hot, HasKey: true, Data: make([]byte, 36)}) // each weighs as much as a second's limit
		}
		if err := w.apply(b, &passage{}); err != nil || b.Counts().Rejected != 3 {
			t.Fatalf("%+v, %v", b.Counts(), err)
		}
		for n := range 5 { // of the five that may come at once, one is spent
			wait := w.keys.buckets.Take(hot, &w.keys.limit, rate.Ask{Events: 1}, w.keys.buckets.Moment(now))
			if (wait > 0) != (n == 4) {
				t.Errorf("event %d behind the first waits %v", n+1, wait)
			}
		}
	})
}
