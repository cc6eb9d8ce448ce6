package gateway

import (
	"encoding/json"
	"errors"
	"net/http"
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

// What is taken whole or not at all is told to wait until all of it is there, and is taken then: also when it is more than
// a burst. One event at a time it would be told too little, and the last would never be taken.
func TestWholeBatchesWaitForAllOfThem(t *testing.T) {
	for name, is := range map[string]struct{ rated, limited bool }{"rate": {rated: true}, "limit": {limited: true}, "both": {true, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // whose clock moves only by the waits
				w := pacing{table: equalTable(t, 2)}
				none := prometheus.NewCounter(prometheus.CounterOpts{Name: "none"})
				if is.rated {
					w.keys = &keyRate{limit: rate.Limit{Events: 10, Burst: time.Second}, buckets: rate.NewTable(16, time.Now(), none.Inc), refused: none}
				}
				if is.limited { // ten events of ours a second, and as many at once
					hi, lo := w.table.KeyHash(event.AsStream, []byte("hot"))
					l := newKeyLimit(partitioner.Limit{Hi: hi, Lo: lo, Rate: 1000})
					w.limits = &keyLimits{buckets: rate.NewTable(16, time.Now(), none.Inc), refused: none, all: map[[2]uint64]*keyLimit{{hi, lo}: l}}
				}
				wholeBatches(t, &w)
			})
		})
	}
}

func wholeBatches(t *testing.T, w *pacing) {
	batch := func(hot, cold int) *event.Batch {
		b := &event.Batch{Strict: true}
		for i := range hot + cold {
			e := event.Event{Key: []byte("hot"), HasKey: true, Data: make([]byte, 100-partitioner.EventCost)}
			if i >= hot {
				e.Key = []byte("cold")
			}
			b.Events = append(b.Events, e)
		}
		return b
	}
	for _, step := range []struct {
		hot, cold int
		wait      time.Duration
	}{
		{6, 3, 0},                       // of the ten of either
		{6, 3, 200 * time.Millisecond},  // four of the hot are left
		{6, 3, 0},                       // as was said
		{25, 1, time.Second},            // more than the burst: when it is full
		{25, 1, 0},                      //
		{1, 0, 1600 * time.Millisecond}, // it owes fifteen
		{1, 1, 0},                       //
	} {
		b := batch(step.hot, step.cold)
		err := w.apply(b, &passage{})
		if step.wait == 0 {
			if err != nil || b.Counts().Rejected > 0 {
				t.Fatalf("%+v: %v, %+v", step, err, b.Counts())
			}
			continue
		}
		no, _ := errors.AsType[*event.Problem](err)
		if no == nil || no.Code != event.KeyRate || no.RetryAfter != step.wait || b.RetryAfter != step.wait || b.Counts().Rejected != step.hot ||
			len(b.Errors) != step.hot || b.Errors[0].Code != event.KeyRate {
			t.Fatalf("%+v: %+v, %v, %+v", step, no, b.RetryAfter, b.Counts())
		}
		<-time.After(step.wait)
	}
}

// Nobody is asked for more memory than a batch may have: then nothing is taken of any rate.
func TestWholeBatchesPayForTheirKeys(t *testing.T) {
	k := newKeyRate("web", config.StreamRate{Key: config.Rate{Events: 1, Burst: settings.Duration(time.Hour)}}, newRateMetrics(prometheus.NewRegistry()))
	poor := event.Problemf(event.Overloaded, "no memory")
	b := &event.Batch{Strict: true, Payer: payerOf{poor}, Events: []event.Event{{Key: []byte("a"), HasKey: true}}}
	if err := (&pacing{keys: k}).apply(b, &passage{}); err != error(poor) || b.Counts().Accepted != 1 {
		t.Errorf("%v, %+v", err, b.Counts())
	}
}

type payerOf struct{ no *event.Problem }

func (p payerOf) Pay(int64) *event.Problem { return p.no }
func (p payerOf) Refund(int64)             {}

// K12 with mode=strict: a key over its rate is nothing that is wrong with the request, so the answer is one after which it is
// sent again, also with its Idempotency-Key. What is wrong for good stays 422.
func TestK12StrictRequestOverItsRateCanBeSentAgain(t *testing.T) {
	cfg := zero(t)
	cfg.Streams = nil
	in := start(t, cfg)
	defer in.end()
	define := func(events string) { // a new rate begins with full buckets
		doc := `{"key":{"json":"/k","required":true},"rate":{"key":{"events":` + events + `,"burst":"1h"}}}`
		if _, _, err := in.SetStream(t.Context(), "web", json.RawMessage(doc), admin.Match{}); err != nil {
			t.Fatal(err)
		}
	}
	define("0.0025") // nine events, and another one after 400 s
	in.want(200, `"accepted":8`, "web", lines("A", 8))
	const cloud = `{"specversion":"1.0","id":"1","source":"/s","type":"t","partitionkey":"A"},{"specversion":"1.0","id":"2","source":"/s","type":"t","partitionkey":"A"}`
	for _, r := range []struct {
		mediaType, body string
		status          int
		code            string
		rejected        int
		retryable       bool
	}{
		{"application/x-ndjson", lines("B", 2) + lines("A", 3), 429, "key_rate", 3, true},
		{"application/json", `[{"k":"B"},{"k":"A"},{"k":"A"}]`, 429, "key_rate", 2, true},
		{ceBatchType, "[" + cloud + "]", 429, "key_rate", 2, true},
		{"application/x-ndjson", lines("A", 3) + "{}\n", 422, "strict_rejected", 1, false}, // sent again it would be refused again
		{"application/x-ndjson", lines("A", 3) + "{\n", 422, "strict_rejected", 1, false},
	} {
		resp, doc := in.do("POST", in.events("web?mode=strict"), r.body, "Content-Type: "+r.mediaType)
		var a struct {
			Code                string
			Retryable           bool
			Rejected            int
			Errors              []struct{ Code string }
			Status              int
			Stored, Stream, Ack string
		}
		if err := json.Unmarshal([]byte(doc), &a); err != nil {
			t.Fatal(doc)
		}
		if resp.StatusCode != r.status || a.Status != r.status || a.Code != r.code || a.Retryable != r.retryable || a.Rejected != r.rejected ||
			len(a.Errors) != r.rejected || (resp.Header.Get("Retry-After") != "") != r.retryable {
			t.Errorf("%s: %d %v %s", r.body, resp.StatusCode, resp.Header, doc)
		}
	}
	once := func() *http.Response {
		resp, doc := in.once("web/events?mode=strict", lines("B", 2)+lines("A", 3), "Idempotency-Key", "a")
		if resp.StatusCode == 429 != strings.Contains(doc, `"code":"key_rate"`) {
			t.Error(doc)
		}
		return resp
	}
	if resp := once(); resp.StatusCode != 429 {
		t.Errorf("%d", resp.StatusCode)
	}
	if n := len(in.rows("web")); n != 8 {
		t.Errorf("%d events are stored", n)
	}
	define("0.005")
	if resp := once(); resp.StatusCode != 200 || resp.Header.Get("Idempotency-Replayed") != "" {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
	if n := len(in.rows("web")); n != 13 {
		t.Errorf("%d events are stored", n)
	}
}
