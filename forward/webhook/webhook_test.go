package webhook_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/forward/forwardtest"
	"github.com/headgate-io/headgate/forward/webhook"
	"github.com/headgate-io/headgate/internal/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

var quiet = slog.New(slog.DiscardHandler)

// open returns a backend over the nodes that ends with the test.
func open(t testing.TB, cfg webhook.Config) *webhook.Backend { return openLogging(t, cfg, quiet) }

func openLogging(t testing.TB, cfg webhook.Config, log *slog.Logger) *webhook.Backend {
	t.Helper()
	if cfg.Numbers == "" {
		cfg.Numbers = filepath.Join(t.TempDir(), "numbers")
	}
	b, err := webhook.Open(cfg, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// refuse answers runs that contain the word with a status.
func refuse(t testing.TB, word string, status int) func(*forward.Run) forwardtest.Answer {
	return func(run *forward.Run) (a forwardtest.Answer) {
		if forwardtest.Contains(t, run, word) {
			a.Status = status
		}
		return a
	}
}

func TestContract(t *testing.T) {
	for name, recognise := range map[string]bool{"a node that knows Idempotency-Key": true, "a node that does not": false} {
		t.Run(name, func(t *testing.T) {
			forwardtest.Run(t, func(t *testing.T) *forwardtest.Harness { return harness(t, recognise) })
		})
	}
}

func harness(t *testing.T, recognise bool) *forwardtest.Harness {
	node := forwardtest.NewReceiver(t)
	node.Recognise = recognise
	node.Judge(refuse(t, "poison", http.StatusUnprocessableEntity))
	cfg := webhook.Config{Nodes: []string{node.URL}, Numbers: filepath.Join(t.TempDir(), "numbers")}
	b := open(t, cfg)
	return &forwardtest.Harness{
		Backend: b, Stored: node.Runs, Checks: recognise, Close: b.Close,
		Reopen:  func() forward.Backend { return open(t, cfg) },
		Refused: "poison", RefusedCode: event.BackendRefused,
		Full: func() func() {
			node.Judge(func(*forward.Run) forwardtest.Answer {
				return forwardtest.Answer{Status: http.StatusInsufficientStorage}
			})
			return func() { node.Judge(nil) }
		},
		LoseAnswer: func() { node.Script(forwardtest.Answer{Cut: forwardtest.BeforeHeaders, Store: true}) },
		Hang: func() <-chan struct{} {
			arrived := make(chan struct{})
			node.Script(forwardtest.Answer{Arrived: arrived, After: make(chan struct{})})
			return arrived
		},
	}
}

// F20: the whole table of what a status means.
func TestF20StatusTable(t *testing.T) {
	type want struct {
		refused bool
		open    bool // at once
		code    event.Code
		reason  string
	}
	retried := func(reason string) want { return want{code: event.BackendUnavailable, reason: reason} }
	content := want{refused: true, code: event.BackendRefused, reason: "refused"}
	misconfigured := want{open: true, code: event.BackendUnavailable, reason: "misconfigured"}
	for status, want := range map[int]want{
		400: content, 422: content, 413: {refused: true, code: event.EventTooLarge, reason: "too_large"},
		408: retried("status_400"), 425: retried("status_400"), 429: retried("status_400"),
		500: retried("status_500"), 501: retried("status_500"), 502: retried("status_500"), 503: retried("status_500"),
		504: retried("status_500"), 599: retried("status_500"), 507: {code: event.BackendFull, reason: "full"},
		300: misconfigured, 301: misconfigured, 302: misconfigured, 304: misconfigured, 307: misconfigured, 308: misconfigured,
		401: misconfigured, 402: misconfigured, 403: misconfigured, 404: misconfigured, 405: misconfigured, 407: misconfigured,
		409: misconfigured, 410: misconfigured, 411: misconfigured, 415: misconfigured, 431: misconfigured, 451: misconfigured,
	} {
		node := forwardtest.NewReceiver(t)
		b := open(t, webhook.Config{Nodes: []string{node.URL}})
		node.Script(forwardtest.Answer{Status: status, Header: map[string]string{"Location": node.URL}})
		err := b.Send(t.Context(), forwardtest.NewRun(0, 1, "a"))
		e, ok := errors.AsType[*forward.SendError](err)
		if !ok || e.Refused != want.refused || e.Code != want.code || e.Reason != want.reason {
			t.Errorf("%d: %+v, want %+v", status, err, want)
		}
		if got := b.Err() != nil; got != want.open {
			t.Errorf("%d: circuit open %v: %v", status, got, b.Err())
		}
		if node.Posts() != 1 {
			t.Errorf("%d: %d posts, want 1: redirects are not followed, Send does not retry", status, node.Posts())
		}
	}
	for _, status := range []int{200, 201, 202, 204, 299} {
		node := forwardtest.NewReceiver(t)
		b := open(t, webhook.Config{Nodes: []string{node.URL}})
		node.Script(forwardtest.Answer{Status: status})
		if err := b.Send(t.Context(), forwardtest.NewRun(0, 1, "a")); err != nil {
			t.Errorf("%d: %v", status, err)
		}
	}
}

func TestHeadersAreTheDocumentedOnes(t *testing.T) {
	node := forwardtest.NewReceiver(t)
	b := open(t, webhook.Config{Nodes: []string{"http://user:pass%20word@" + node.URL[len("http://"):]}})
	for _, encoding := range []string{"zstd", ""} {
		run := forwardtest.NewRun(3, 11, "a", "b", "c", "d", "e")
		run.ContentEncoding = encoding
		if err := b.Send(t.Context(), run); err != nil {
			t.Fatal(err)
		}
	}
	for i, h := range node.Heads() {
		want := map[string]string{
			"Content-Type": "application/x-ndjson", "Content-Encoding": "zstd", "Idempotency-Key": forwardtest.Gateway + ".web.3.11+1",
			"Headgate-Stream": "web", "Headgate-Partition": "3", "Headgate-First-Seq": "11", "Headgate-Last-Seq": "15",
			"Headgate-Count": "5", "Headgate-Table-Version": "7", "Content-Length": "10",
			"User-Agent": "headgate", "Authorization": "Basic dXNlcjpwYXNzIHdvcmQ=",
		}
		if i == 1 {
			delete(want, "Content-Encoding")
		}
		for name, value := range want {
			if got := h.Values(name); len(got) != 1 || got[0] != value {
				t.Errorf("%s: %q, want %q", name, got, value)
			}
		}
		if len(h) != len(want) {
			t.Errorf("headers %v", h)
		}
	}
}

// Wherever an answer breaks off, it is none, and the run goes out again.
func TestCutAnswersAreNone(t *testing.T) {
	for _, cut := range []forwardtest.Cut{forwardtest.BeforeHeaders, forwardtest.InHeaders, forwardtest.InBody} {
		for _, status := range []int{200, 400, 404} {
			node := forwardtest.NewReceiver(t)
			b := open(t, webhook.Config{Nodes: []string{node.URL}})
			node.Script(forwardtest.Answer{Cut: cut, Status: status})
			err := b.Send(t.Context(), forwardtest.NewRun(0, 1, "a"))
			if e, ok := errors.AsType[*forward.SendError](err); !ok || e.Refused || e.Reason != "connection" || b.Err() != nil {
				t.Errorf("cut %d in %d: %v", cut, status, err)
			}
			if err := b.Send(t.Context(), forwardtest.NewRun(0, 1, "a")); err != nil || node.Posts() != 2 {
				t.Errorf("cut %d in %d: then %v after %d posts", cut, status, err, node.Posts())
			}
		}
	}
}

// A node may close a connection that has been used; the run goes out over a new one without a failure.
func TestAConnectionThatWasClosedBetweenRuns(t *testing.T) {
	node := forwardtest.NewReceiver(t)
	b := open(t, webhook.Config{Nodes: []string{node.URL}})
	for n := range uint64(3) {
		if err := b.Send(t.Context(), forwardtest.NewRun(0, n+1, "a")); err != nil {
			t.Errorf("run %d: %v", n, err)
		}
		node.Stop()
		node.Start()
	}
	node.Script(forwardtest.Answer{}, forwardtest.Answer{Cut: forwardtest.BeforeHeaders}, forwardtest.Answer{Cut: forwardtest.BeforeHeaders})
	if err := b.Send(t.Context(), forwardtest.NewRun(0, 4, "a")); err != nil {
		t.Error(err)
	}
	if err := b.Send(t.Context(), forwardtest.NewRun(0, 5, "a")); err == nil {
		t.Error("two connections in a row without an answer are no failure")
	}
	if node.Posts() != 6 {
		t.Errorf("%d posts, want 6", node.Posts())
	}
}

func TestANodeThatNeverAnswers(t *testing.T) {
	node := forwardtest.NewReceiver(t)
	b := open(t, webhook.Config{Nodes: []string{node.URL}, Timeout: 50 * time.Millisecond})
	node.Script(forwardtest.Answer{After: make(chan struct{})}, forwardtest.Answer{After: make(chan struct{})})
	for range 2 {
		err := b.Send(t.Context(), forwardtest.NewRun(0, 1, "a"))
		if e, ok := errors.AsType[*forward.SendError](err); !ok || e.Refused || e.Reason != "timeout" || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a node that never answers: %v", err)
		}
	}
	for b.Send(t.Context(), forwardtest.NewRun(0, 1, "a")) != nil { // the node answers again, if not always that fast
	}
}

// An answer that comes after the time is over is never taken for that of the next run.
func TestALateAnswer(t *testing.T) {
	node := forwardtest.NewReceiver(t)
	b := open(t, webhook.Config{Nodes: []string{node.URL}, Timeout: time.Minute})
	late, arrived := make(chan struct{}), make(chan struct{})
	node.Script(forwardtest.Answer{Arrived: arrived, After: late})
	for wait, came := 50*time.Millisecond, false; !came; wait *= 2 { // until it gets to the node in that time
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		err := b.Send(ctx, forwardtest.NewRun(0, 1, "a"))
		cancel()
		if e, ok := errors.AsType[*forward.SendError](err); !ok || e.Reason != "timeout" {
			t.Fatalf("the caller's time is over: %v", err)
		}
		select {
		case <-arrived:
			came = true
		case <-time.After(time.Second):
		}
	}
	close(late)
	node.Script(forwardtest.Answer{Status: 500})
	if err := b.Send(t.Context(), forwardtest.NewRun(0, 1, "a")); err == nil {
		t.Error("the answer of the run before was taken")
	}
}

// Long answers are cut short, and their status counts.
func TestLongAnswersAreBounded(t *testing.T) {
	node := forwardtest.NewReceiver(t)
	b := open(t, webhook.Config{Nodes: []string{node.URL}})
	long := string(make([]byte, 1<<20))
	for _, header := range []map[string]string{{"Content-Length": "1048576"}, nil} { // nil: chunked
		node.Script(forwardtest.Answer{Body: long, Header: header}, forwardtest.Answer{Status: 422, Body: long, Header: header})
		if err := b.Send(t.Context(), forwardtest.NewRun(0, 1, "a")); err != nil {
			t.Errorf("200 with a long body: %v", err)
		}
		err := b.Send(t.Context(), forwardtest.NewRun(0, 2, "a"))
		if e, ok := errors.AsType[*forward.SendError](err); !ok || !e.Refused || len(e.Error()) > 2000 {
			t.Errorf("422 with a long body: %v", err)
		}
	}
	node.Script(forwardtest.Answer{Header: map[string]string{"Long": string(make([]byte, 64<<10))}})
	if err := b.Send(t.Context(), forwardtest.NewRun(0, 3, "a")); err == nil {
		t.Error("headers without an end were read")
	}
}

func TestOpenRefusesWhatCannotWork(t *testing.T) {
	for name, cfg := range map[string]webhook.Config{
		"no nodes":      {},
		"twice":         {Nodes: []string{"http://a/", "http://u:p@a/"}},
		"other scheme":  {Nodes: []string{"ftp://a/"}},
		"no host":       {Nodes: []string{"http:///x"}},
		"no URL":        {Nodes: []string{"http://user:secret@[::1"}},
		"fragment":      {Nodes: []string{"http://user:secret@a/#b"}},
		"below zero":    {Nodes: []string{"http://a/"}, Timeout: -1},
		"no such place": {Nodes: []string{"http://a/"}, Numbers: filepath.Join(t.TempDir(), "no", "numbers")},
	} {
		if cfg.Numbers == "" {
			cfg.Numbers = filepath.Join(t.TempDir(), "numbers")
		}
		b, err := webhook.Open(cfg, quiet)
		if err == nil {
			b.Close()
			t.Errorf("%s: no error", name)
		} else if text := err.Error(); len(text) > 0 && containsSecret(text) {
			t.Errorf("%s: %s", name, text)
		}
	}
}
