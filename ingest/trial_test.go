package ingest

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/event"
)

// dry sends a dry run and returns its answer and what it explains.
func (g *gate) dry(query, body string, header ...string) (result, trialDocument) {
	g.t.Helper()
	a := g.dial().send(request11(events+"?dry_run=true"+query, body, append(header, ndjson)...)).answer()
	var doc trialDocument
	if err := json.Unmarshal([]byte(a.body), &doc); err != nil {
		g.t.Fatal(err)
	}
	return a, doc
}

func TestDryRunExplainsEachEvent(t *testing.T) {
	var seen []bool
	g := serve(t, Config{}, &fakeStream{accept: func(_ context.Context, b *event.Batch) error {
		seen = append(seen, b.Trial)
		if !b.Trial {
			return nil
		}
		for i := range b.Events {
			e := &b.Events[i]
			e.Slot, e.Child = event.NoSlot, event.NoSlot
			switch {
			case strings.Contains(string(e.Data), "drop"):
				e.Verdict = event.Filtered
			case strings.Contains(string(e.Data), "key"):
				e.Key, e.HasKey, e.Hash, e.Slot, e.Partition = []byte("\xff"), true, 0xab, 7, 3
			}
		}
		b.Trace("plugin p")
		if len(b.Events) > 0 {
			b.Events[0].Key, b.Events[0].HasKey = []byte(""), true
		}
		b.Trace("key")
		return nil
	}})
	a, doc := g.dry("", "{\"n\":1}\n{bad\n{\"drop\":1}\n{\"key\":1}\n", "Idempotency-Key: k")
	a.want(t, 200, "")
	if doc.Status != 207 || !doc.DryRun || doc.Accepted != 2 || doc.Filtered != 1 || doc.Rejected != 1 || len(doc.Events) != 4 || doc.Truncated {
		t.Fatalf("%s", a.body)
	}
	for i, want := range []string{
		`{"index":0,"offset":0,"verdict":"accepted","key":"","key_from":"key","partition":0}`,
		`{"index":1,"offset":9,"verdict":"rejected","by":"syntax","partition":null,"code":"malformed_json",`,
		`{"index":2,"offset":13,"verdict":"filtered","by":"plugin p"}`,
		`{"index":3,"offset":24,"verdict":"accepted","key_base64":"/w==","key_from":"plugin p","hash":"00000000000000ab","slot":7,"partition":3}`,
	} {
		got, err := json.Marshal(doc.Events[i])
		if err != nil {
			t.Fatal(err)
		}
		if want = strings.Replace(want, `"partition":null,`, "", 1); !strings.HasPrefix(string(got), want) {
			t.Errorf("%d: %s, want %s", i, got, want)
		}
	}
	if _, strict := g.dry("&mode=strict", "{\"n\":1}\n{bad\n"); strict.Status != 422 || strict.Accepted != 1 {
		t.Errorf("strict: %+v", strict)
	}
	if _, all := g.dry("", "{bad\n"); all.Status != 400 || all.Rejected != 1 {
		t.Errorf("all bad: %+v", all)
	}
	if _, none := g.dry("&ack=accepted", ""); none.Status != 202 || len(none.Events) != 0 {
		t.Errorf("no event: %+v", none)
	}
	for i, trial := range seen {
		if !trial {
			t.Errorf("batch %d was no trial", i)
		}
	}
	seen = nil
	// The key was not used by the dry run.
	if a := g.post("{}\n", ndjson, "Idempotency-Key: k").want(t, 200, ""); a.Header.Get("Idempotency-Replayed") != "" || len(seen) != 1 {
		t.Error("the dry run used the key")
	}
	g.dial().send(request11(events+"?dry_run=yes", "{}", ndjson)).answer().want(t, 400, event.BadParameter)
	g.dial().send(request11(events+"?dry_run=false", "{}", ndjson)).answer().want(t, 200, "")
}

func TestDryRunIsBounded(t *testing.T) {
	g := serve(t, Config{}, &fakeStream{accept: func(context.Context, *event.Batch) error { return nil }})
	_, doc := g.dry("", strings.Repeat("{bad\n{}\n", 1500))
	if len(doc.Events) != event.MaxTraces || !doc.Truncated || doc.Rejected != 1500 || doc.Accepted != 1500 ||
		doc.Events[998].Code != event.MalformedJSON || doc.Events[998].Detail == "" {
		t.Errorf("%d events, %+v, %+v", len(doc.Events), doc.Rejected, doc.Events[998])
	}
}
