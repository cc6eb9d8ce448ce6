package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// browserPage posts an event to the URL behind its # and shows what was answered.
const browserPage = `<!doctype html><title>page</title><p id=out>waiting</p><script>
fetch(location.hash.slice(1), {method: "POST", headers: {"Content-Type": "application/json", "Headgate-Key": "k"}, body: '{"from":"a browser"}'})
  .then(async r => [r.status, await r.text()], e => ["failed", e])
  .then(said => document.getElementById("out").textContent = said.join(" "))
</script>`

// A browser posts over HTTP/3, from a page of another origin: the gateway listens on no TCP port with TLS.
func TestChromiumPostsOverHTTP3(t *testing.T) {
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed")
	}
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte(browserPage))
	}))
	defer page.Close()
	p := startGateway(t, t.TempDir(), append(onQUIC, "--set", "http.cors.origins=["+page.URL+"]")...)
	at := strings.TrimPrefix(p.quicURL(), "https://")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(),
		"--origin-to-force-quic-on="+at, "--ignore-certificate-errors-spki-list="+p.fingerprint(), "--virtual-time-budget=20000", "--dump-dom",
		page.URL+"/#https://"+at+"/v1/streams/web/events")
	cmd.WaitDelay = time.Minute
	var errs strings.Builder
	cmd.Stderr = &errs
	shown, err := cmd.Output()
	if err != nil || !strings.Contains(string(shown), "200 ") || !strings.Contains(string(shown), `"accepted":1`) {
		t.Fatalf("%v; shown:\n%s\n%s", err, shown, errs.String())
	}
	if rows := p.tail("web"); len(rows) != 1 || string(rows[0].Data) != `{"from":"a browser"}` {
		t.Errorf("stored %+v", rows)
	}
}

// fingerprint is that of the certificate, as the log says it.
func (p *process) fingerprint() string {
	for line := range strings.Lines(p.log.String()) {
		var said struct{ Fingerprint string }
		if json.Unmarshal([]byte(line), &said) == nil && said.Fingerprint != "" {
			return said.Fingerprint
		}
	}
	p.t.Fatalf("no fingerprint in the log:\n%s", p.log)
	return ""
}

// ngtcp2 is another implementation of QUIC. Its client changes its address, as a NAT does, and updates its keys, while
// requests run over HTTP/3. It cannot say Content-Type, so that a whole request gets a whole answer, which refuses it.
func TestF49F57Ngtcp2OverHTTP3(t *testing.T) {
	client, err := exec.LookPath("gtlsclient")
	if err != nil {
		t.Skip("gtlsclient is not installed (ngtcp2-client)")
	}
	p := startGateway(t, t.TempDir(), onQUIC...)
	target, err := url.Parse(p.quicURL() + "/v1/streams/web/events")
	if err != nil {
		t.Fatal(err)
	}
	body := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(body, []byte(strings.Repeat(`{"n":1}`+"\n", 200_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, flags := range map[string][]string{
		"plain":      nil,
		"key update": {"--key-update=1ms", "--delay-stream=50ms"},
		"rebinding":  {"--change-local-addr=1ms", "--nat-rebinding", "--delay-stream=50ms"},
		"migration":  {"--change-local-addr=1ms", "--delay-stream=50ms"},
		"loss":       {"--tx-loss=0.05", "--rx-loss=0.05"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		args := append([]string{"--no-quic-dump", "-m", "POST", "-d", body, "--exit-on-all-streams-close", "-n", "3"}, flags...)
		out, err := exec.CommandContext(ctx, client, append(args, target.Hostname(), target.Port(), target.String())...).CombinedOutput()
		said := string(out)
		if n := strings.Count(said, "[:status: 415]"); err != nil || n != 3 {
			t.Errorf("%s: %v, %d answers:\n%s", name, err, n, said[max(0, len(said)-3000):])
			continue
		}
		happened := map[string]string{"key update": "Initiate key update", "rebinding": "Changing local address", "migration": "Changing local address"}[name]
		if !strings.Contains(said, happened) {
			t.Errorf("%s did not happen:\n%s", name, fmt.Sprintf("%.3000s", said))
		}
	}
}
