package admin

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/event"
)

// letterFake is a dead letter in memory.
type letterFake struct {
	list   []Letter
	query  LetterQuery
	order  LetterOrder
	reads  int
	replay func(tell func(ReplaySums) error) (ReplaySums, error)
	err    error
}

func (f *letterFake) ReadLetters(_ context.Context, q LetterQuery, visit func([]Letter) error) error {
	f.query, f.reads = q, f.reads+1
	if err := visit(nil); err != nil {
		return err
	}
	for i := range f.list {
		if q.Filter.Takes(&f.list[i]) {
			if err := visit(f.list[i : i+1]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *letterFake) Replay(_ context.Context, _ string, o LetterOrder, tell func(ReplaySums) error) (ReplaySums, error) {
	f.order = o
	if f.replay != nil {
		return f.replay(tell)
	}
	return ReplaySums{Selected: 3, Replayed: 2, Left: 1}, f.err
}

func (f *letterFake) PurgeLetters(_ context.Context, _ string, o LetterOrder) (PurgeSums, error) {
	f.order = o
	return PurgeSums{Selected: 2, Purged: 2}, f.err
}

func letterOf(number uint64, pairs ...string) Letter {
	l := Letter{Row: Row{Gateway: "ab", Number: number, Slot: event.NoSlot, Data: []byte("x")}, Stored: int64(number) * int64(time.Hour)}
	for i := 0; i < len(pairs); i += 2 {
		l.Attrs = append(l.Attrs, event.Attr{Name: []byte(pairs[i]), Value: []byte(pairs[i+1])})
	}
	return l
}

func TestLetterFilter(t *testing.T) {
	list := []Letter{
		letterOf(1, "code", "plugin_failed", "plugin", "p", "reason", "TRAP here"),
		letterOf(2, "code", "backend_refused", "reason", "not this"),
		letterOf(3),
	}
	at := func(hour int64) time.Time { return time.Unix(0, hour*int64(time.Hour)) }
	for want, f := range map[string]LetterFilter{
		"1 2 3": {}, "1": {Code: "plugin_failed"}, "1 ": {Plugin: "p"}, "2": {Reason: "not"}, "2 3": {From: 2}, "1 2": {To: 2}, "2 3 ": {Since: at(2)},
		"1 2 ": {Until: at(3)}, "3": {Letters: []string{"ab.3", "cd.2"}}, "2 ": {Letters: []string{"2", "x"}}, "": {From: 2, Code: "plugin_failed"},
	} {
		var got []string
		for i := range list {
			if f.Takes(&list[i]) {
				got = append(got, strings.TrimPrefix(list[i].Name(), "ab."))
			}
		}
		if text := strings.Join(got, " "); text != strings.TrimSpace(want) {
			t.Errorf("%+v takes %q, want %q", f, text, want)
		}
	}
}

func TestLettersAreListedAndShown(t *testing.T) {
	b := start(t)
	b.letters.list = []Letter{letterOf(1, "code", "plugin_failed"), letterOf(2, "code", "backend_refused")}
	b.letters.list[1].Settled = true
	b.ask("GET", "/v1/deadletter/web?code=backend_refused&settled=true&limit=1&from=2&since=2026-03-02T08:00:00Z", "").
		expect(t, 200)
	if q := b.letters.query; q.Stream != "web" || q.Filter.Code != "backend_refused" || !q.Settled || q.Number != 2 || q.Filter.Since.IsZero() {
		t.Errorf("%+v", q)
	}
	g := b.ask("GET", "/v1/deadletter/web", "").expect(t, 200, `"letter":"ab.1","stored":"1970-01-01T01:00:00Z"}`, `"stream":"web.deadletter"`,
		`"attributes":{"code":"backend_refused"}`, `"letter":"ab.2","stored":"1970-01-01T02:00:00Z","settled":true}`)
	for line := range strings.Lines(g.body) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
	b.ask("GET", "/v1/deadletter/web/ab.2", "").expect(t, 200, `"letter":"ab.2"`, `"settled":true`)
	b.ask("GET", "/v1/deadletter/web/9", "").expect(t, 404, `"unknown_letter"`)
	for _, bad := range []string{"?since=yesterday", "?code=", "?settled=x", "?state=open", "?code=a&code=b"} {
		b.ask("GET", "/v1/deadletter/web"+bad, "").expect(t, 400, `"bad_parameter"`)
	}
	before := b.letters.reads
	b.runs = func(_ context.Context, _ Query, visit func(StoredRun) error) error {
		return visit(StoredRun{Payload: []byte("run")})
	}
	if g := b.ask("GET", "/v1/deadletter/web", "", "Accept", "application/octet-stream").expect(t, 200); g.body != "run" || b.letters.reads != before {
		t.Errorf("%q", g.body)
	}
	b.ask("GET", "/v1/deadletter/web?code=x", "", "Accept", "application/octet-stream").expect(t, 400)
}

func TestLettersAreReplayed(t *testing.T) {
	b := start(t)
	order := func(body string) got {
		return b.ask("POST", "/v1/deadletter/web", body, "Content-Type", "application/json")
	}
	order(`{"action":"replay","all":true}`).expect(t, 200, `{"action":"replay","sums":{"selected":3,"replayed":2,"filtered":0,"failed":0,"left":1},"done":true}`)
	order(`{"action":"purge","code":"x","until":"1h","dry_run":true,"limit":5}`).expect(t, 200, `"dry_run":true,"sums":{"selected":2,"purged":2,"left":0},"done":true`)
	if o := b.letters.order; !o.DryRun || o.Limit != 5 || o.Filter.Code != "x" || time.Since(o.Filter.Until) < time.Hour {
		t.Errorf("%+v", o)
	}
	b.letters.replay = func(tell func(ReplaySums) error) (ReplaySums, error) {
		if err := tell(ReplaySums{Selected: 3, Left: 3}); err != nil {
			return ReplaySums{}, err
		}
		return ReplaySums{Selected: 3, Replayed: 1, Left: 2}, event.Problemf(event.Draining, "stops")
	}
	g := order(`{"action":"replay","from":1}`).expect(t, 200, `"done":false}`, `"left":2},"done":true,"error":"draining","detail":"stops"}`)
	if n := strings.Count(g.body, "\n"); n != 2 || g.header.Get("Content-Type") != rowsType {
		t.Errorf("%d lines as %s: %s", n, g.header.Get("Content-Type"), g.body)
	}
	b.letters.replay, b.letters.err = nil, event.Problemf(event.ReplayRunning, "wait")
	order(`{"action":"replay","all":true}`).expect(t, 409, `"replay_running"`, `"retryable":true`)
	for _, bad := range []string{
		`{"action":"replay"}`, `{"action":"replay","all":true,"code":"x"}`, `{"all":true}`, `{"action":"drop","all":true}`,
		`{"action":"replay","all":true,"rate":-1}`, `{"action":"purge","all":true,"rate":1}`, `{"action":"replay","since":"soon"}`,
	} {
		order(bad).expect(t, 400, `"bad_parameter"`)
	}
	order(`{"action":"replay","al":true}`).expect(t, 400)
}
