package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The tests without real_ in their file's name run commands in this process, against scripted servers.

// result is what a command did.
type result struct {
	code        int
	out, stderr string
}

// command runs a command line with a clock that never waits.
func command(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	return commandAt(t.Context(), &fakeClock{}, stdin, args...)
}

func commandAt(ctx context.Context, c *fakeClock, stdin string, args ...string) result {
	var out, errs bytes.Buffer
	code := run(ctx, args, streams{strings.NewReader(stdin), &out, &errs}, c.clock())
	return result{code, out.String(), errs.String()}
}

// expect checks the exit code and that stderr is one line with each of parts.
func (r result) expect(t *testing.T, code int, parts ...string) result {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d\n%s%s", r.code, code, r.out, r.stderr)
	}
	for _, p := range parts {
		if !strings.Contains(r.stderr, p) {
			t.Errorf("no %q on stderr: %s", p, r.stderr)
		}
	}
	if code == 0 && len(parts) == 0 && r.stderr != "" {
		t.Errorf("stderr: %s", r.stderr)
	}
	return r
}

// fakeClock moves only when someone waits, and remembers how long.
type fakeClock struct {
	now   time.Time
	waits []time.Duration
	then  func() // called by each wait; may be nil
}

func (c *fakeClock) clock() clock {
	c.now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return clock{
		now:    func() time.Time { return c.now },
		random: func() float64 { return 0.5 },
		pause: func(ctx context.Context, d time.Duration) error {
			c.now, c.waits = c.now.Add(d), append(c.waits, d)
			if c.then != nil {
				c.then()
			}
			return ctx.Err()
		},
	}
}

// script is a server that gives its answers in turn and the last one for ever.
type script struct {
	*httptest.Server
	mu       sync.Mutex
	answers  []reply
	requests []seen
}

// reply is a scripted answer; a status of 0 breaks the connection.
type reply struct {
	status int
	body   string
	header http.Header
}

type seen struct {
	method, path, body string
	header             http.Header
}

func scripted(t *testing.T, answers ...reply) *script {
	t.Helper()
	s := &script{answers: answers}
	s.Server = httptest.NewServer(http.HandlerFunc(s.answer))
	t.Cleanup(s.Close)
	t.Setenv("HEADGATE_URL", s.URL)
	t.Setenv("HEADGATE_ADMIN_URL", s.URL)
	return s
}

// sent are the requests so far.
func (s *script) sent() []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *script) answer(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.requests = append(s.requests, seen{r.Method, r.URL.RequestURI(), string(body), r.Header})
	a := s.answers[0]
	if len(s.answers) > 1 {
		s.answers = s.answers[1:]
	}
	s.mu.Unlock()
	if a.status == 0 {
		panic(http.ErrAbortHandler)
	}
	for name, values := range a.header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.status)
	io.WriteString(w, a.body)
}

// refused is a problem as the gateway words it.
func refused(status int, code string, members ...string) reply {
	doc := fmt.Sprintf(`{"status":%d,"code":%q,"detail":"because","retryable":%t`, status, code, status >= 500)
	return reply{status: status, body: strings.Join(append([]string{doc}, members...), ",") + "}"}
}

// temporary writes a file for the test.
func temporary(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
