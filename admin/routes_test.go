package admin

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/event"
)

func TestHealth(t *testing.T) {
	b := start(t)
	b.ask("GET", "/livez", "").expect(t, 200, `"live":true`)
	b.ask("GET", "/readyz", "").expect(t, 200, `{"ready":true}`)

	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	b.health = []Dependency{{Name: "control", OK: true, Since: since}, {Name: "backend local", Since: since, Detail: "the disk is full"}}
	g := b.ask("GET", "/readyz", "").expect(t, 503, `"ready":false`, "backend local", "the disk is full", "2026-01-02T03:04:05Z")
	if strings.Contains(g.body, "control") {
		t.Errorf("names what works without ?verbose: %s", g.body)
	}
	b.ask("GET", "/readyz?verbose", "").expect(t, 503, "backend local", `"name":"control","ok":true`)
	b.ask("GET", "/livez", "").expect(t, 200)
}

func TestVersionAndMetrics(t *testing.T) {
	b := start(t)
	b.ask("GET", "/version", "").expect(t, 200, `"version":"1.2.3"`)
	b.ask("GET", "/metrics", "").expect(t, 200, "headgate_test_total 0")
	if g := b.ask("HEAD", "/version", ""); g.status != 200 || g.body != "" {
		t.Errorf("HEAD: %+v", g)
	}
}

func TestUnknownPathAndMethod(t *testing.T) {
	b := start(t)
	b.ask("GET", "/nope", "").expect(t, 404, `"code":"not_found"`, `"request_id"`)
	g := b.ask("POST", "/v1/streams/web", "{}").expect(t, 405, "method_not_allowed")
	if a := g.header.Get("Allow"); a != "DELETE, GET, PUT" {
		t.Errorf("Allow: %s", a)
	}
}

func TestGuard(t *testing.T) {
	b := start(t)
	for host, status := range map[string]int{
		"localhost:9090": 200, "127.0.0.1": 200, "[::1]:9090": 200, "10.1.2.3:9090": 200, "LOCALHOST.": 200,
		"gate.example": 200, "Gate.Example:9090": 200,
		"evil.example": 403, "evil.example:9090": 403, "127.0.0.1.evil.example": 403, "localhost.evil.example": 403,
	} {
		if g := b.ask("GET", "/livez", "", "Host", host); g.status != status {
			t.Errorf("Host %s: %d, want %d", host, g.status, status)
		}
	}
	json := []string{"Content-Type", "application/json"}
	for _, c := range []struct {
		name    string
		method  string
		headers []string
		status  int
	}{
		{"no browser", "PUT", nil, 201},
		{"own page", "PUT", []string{"Origin", b.base, "Sec-Fetch-Site", "same-origin"}, 200},
		{"other origin", "PUT", []string{"Origin", "http://evil.example"}, 403},
		{"other port", "PUT", []string{"Origin", "http://127.0.0.1:1"}, 403},
		{"cross-site", "PUT", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"cross-site read", "GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, 403},
		{"link", "GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, 200},
	} {
		if g := b.ask(c.method, "/v1/streams/fresh", "{}", append(c.headers, json...)...); g.status != c.status {
			t.Errorf("%s: %d, want %d: %s", c.name, g.status, c.status, g.body)
		}
	}
}

func TestPanicIsAnswered(t *testing.T) {
	b := start(t)
	g := b.ask("PUT", "/v1/plugins/p", "panic", "Content-Type", "application/wasm").expect(t, 500, `"code":"internal"`)
	if strings.Contains(g.body, "at the upload") {
		t.Errorf("the panic's text is shown: %s", g.body)
	}
	b.ask("GET", "/livez", "").expect(t, 200)
}

func TestUnexpectedErrorIsNotShown(t *testing.T) {
	b := start(t)
	b.err = errors.New("secret path")
	if g := b.ask("GET", "/v1/streams", "").expect(t, 500, "internal"); strings.Contains(g.body, "secret") {
		t.Errorf("shown: %s", g.body)
	}
	b.err = event.Problemf(event.Overloaded, "later")
	g := b.ask("GET", "/v1/streams", "").expect(t, 503, `"retryable":true`)
	if g.header.Get("Retry-After") == "" {
		t.Error("503 without Retry-After")
	}
}

func TestNewChecksItsDependencies(t *testing.T) {
	if _, err := New(Config{}, Deps{}); err == nil {
		t.Error("New without dependencies succeeds")
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	b := start(t)
	s, err := New(Config{Listen: "127.0.0.1:0"}, b.server.deps)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Run(ctx); err != nil {
		t.Errorf("Run: %v", err)
	}
}

func TestShutdownWithoutRunAndTwice(t *testing.T) {
	b := start(t)
	s, err := New(Config{Listen: "127.0.0.1:0"}, b.server.deps)
	if err != nil {
		t.Fatal(err)
	}
	addr, err := s.Listen()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}
	if _, err := http.Get("http://" + addr.String()); err == nil {
		t.Error("the socket is still open")
	}
}
