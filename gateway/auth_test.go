package gateway

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/gateway/config"
)

// secretFile writes a secret and returns its reference.
func secretFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "file:" + path
}

func secretRef(t *testing.T, text string) config.Secret { return config.Secret(secretFile(t, text)) }

// ask sends a request with a token, to the admin API unless it posts events.
func (in *instance) ask(token, method, path, body string) (int, string) {
	in.t.Helper()
	at := in.addresses.admin
	if method == http.MethodPost && strings.HasSuffix(path, "/events") {
		at = in.addresses.http
	}
	bearer := ""
	if token != "" {
		bearer = "Authorization: Bearer " + token
	}
	resp, doc := in.do(method, fmt.Sprintf("http://%s%s", at, path), body, "Content-Type: application/x-ndjson", bearer)
	return resp.StatusCode, doc
}

func TestTokensGuardTheGateway(t *testing.T) {
	cfg := zero(t)
	cfg.Auth = &config.Auth{Tokens: []config.Token{
		{ID: "web-1", Secret: secretRef(t, "of-web-1-new\nof-web-1-old\n"), Streams: []string{"web"}, Actions: []string{"send"}},
		{ID: "ops", Secret: secretRef(t, "of-ops"), Streams: []string{"*"}, Actions: []string{"admin", "send"}},
		{ID: "reader", Secret: secretRef(t, "of-reader"), Streams: []string{"web"}, Actions: []string{"read"}},
	}}
	in := start(t, cfg)
	defer in.end()
	const web, app = "/v1/streams/web/events", "/v1/streams/app/events"
	for _, c := range []struct {
		token, method, path string
		status              int
		says                string
	}{
		{"", "POST", app, 401, "unauthorized"},
		{"of-web-1", "POST", web, 401, "unauthorized"},
		{"of-web-1-new", "POST", app, 403, `token \"web-1\" is not for stream \"app\"; it is for web`},
		{"of-reader", "POST", web, 403, "lacks the action send"},
		{"of-web-1-new", "POST", web, 200, `"accepted":1`},
		{"of-web-1-old", "POST", web, 200, `"accepted":1`},
		{"of-web-1-new", "GET", "/v1/streams/web", 403, "lacks the action read"},
		{"of-reader", "GET", "/v1/streams/web", 200, `"name":"web"`},
		{"of-reader", "GET", "/v1/streams/app", 403, "not for stream"},
		{"of-reader", "GET", "/v1/streams", 403, "more than one stream"},
		{"of-reader", "DELETE", "/v1/streams/web", 403, "lacks the action admin"},
		{"", "GET", "/v1/streams", 401, "unauthorized"},
		{"of-ops", "GET", "/v1/streams", 200, `"web"`},
		{"", "GET", "/livez", 200, ""},
		{"", "GET", "/metrics", 200, `headgate_ingest_rejected_total{code="unauthorized",stream="other"} 2`},
		{"of-ops", "DELETE", "/v1/streams/web", 204, ""},
	} {
		if status, doc := in.ask(c.token, c.method, c.path, "{}"); status != c.status || !strings.Contains(doc, c.says) {
			t.Errorf("%s %s with %q: %d %s, want %d with %s", c.method, c.path, c.token, status, doc, c.status, c.says)
		}
	}
	if _, err := in.find("app"); err == nil {
		t.Error("a caller that may not send has made a stream")
	}
}

func TestReloadReadsSecretsAgain(t *testing.T) {
	ref := secretFile(t, "the-old-one")
	file := strings.TrimPrefix(ref, "file:")
	cfg := zero(t)
	cfg.Auth = &config.Auth{Tokens: []config.Token{{ID: "a", Secret: config.Secret(ref), Streams: []string{"*"}, Actions: []string{"send"}}}}
	in := start(t, cfg)
	defer in.end()
	for _, step := range []struct {
		text  string
		valid map[string]int
	}{
		{"the-old-one", map[string]int{"the-old-one": 200, "the-new-one": 401}},
		{"the-new-one\nthe-old-one", map[string]int{"the-old-one": 200, "the-new-one": 200}},
		{"", map[string]int{"the-old-one": 200, "the-new-one": 200}},
		{"the-new-one", map[string]int{"the-old-one": 401, "the-new-one": 200}},
	} {
		if err := os.WriteFile(file, []byte(step.text), 0o600); err != nil {
			t.Fatal(err)
		}
		in.Reload()
		for secret, want := range step.valid {
			if status, doc := in.ask(secret, "POST", "/v1/streams/web/events", "{}"); status != want {
				t.Errorf("with %q in the file, %s: %d %s, want %d", step.text, secret, status, doc, want)
			}
		}
	}
}

// TestReloadNamesWhatIsWrong: the words of a reload are those of a start.
func TestReloadNamesWhatIsWrong(t *testing.T) {
	ref := secretFile(t, "0123456789abcdef")
	cfg := zero(t)
	cfg.Auth = &config.Auth{Tokens: []config.Token{{ID: "a", Secret: config.Secret(ref), Streams: []string{"*"}, Actions: []string{"send"}}}}
	var log bytes.Buffer
	g, err := New(cfg, Deps{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"": "auth.tokens.0.secret: the file", "short": "auth.tokens.0.secret: has fewer than"} {
		if err := os.WriteFile(strings.TrimPrefix(ref, "file:"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		log.Reset()
		g.reloadTokens()
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q: %s, want %s", text, &log, want)
		}
	}
}

// TestAuthIsFreeWhenOff: nobody is asked, not even to say yes.
func TestAuthIsFreeWhenOff(t *testing.T) {
	g, err := New(zero(t), Deps{})
	if err != nil {
		t.Fatal(err)
	}
	if g.senders() != nil || g.stewards() != nil {
		t.Error("without auth somebody is asked")
	}
}
