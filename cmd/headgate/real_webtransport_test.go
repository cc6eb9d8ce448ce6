package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/freeport"
)

// observer shows the example page, and tells the test what that says in the end.
const observer = `<!doctype html><title>observer</title><iframe id=page></iframe><script>
const page = document.getElementById("page");
page.src = "/example/?" + location.search.slice(1);
setInterval(() => {
  const said = page.contentDocument?.getElementById("out")?.textContent ?? "";
  if (/^(done|failed)/m.test(said)) fetch("/said", {method: "POST", body: said});
}, 100);
</script>`

// browse opens the example page with a query in Chromium, where that is installed. The gateway is started by serve, which is told
// the page's origin. What the page says in the end comes over the channel, or why the browser ended before.
func browse(t *testing.T, query url.Values, serve func(origin string) (gateway *process, flags []string)) (*process, chan string) {
	t.Helper()
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed")
	}
	over := make(chan string, 1)
	say := func(text string) {
		select {
		case over <- text:
		default: // it was said
		}
	}
	mux := http.NewServeMux()
	mux.Handle("/example/", http.StripPrefix("/example/", http.FileServer(http.Dir("../../examples/webtransport"))))
	mux.HandleFunc("/said", func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		say(string(text))
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, observer)
	})
	page := httptest.NewServer(mux)
	t.Cleanup(page.Close)
	p, flags := serve(page.URL)
	query.Set("gateway", p.quicURL())
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	args := append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir=" + t.TempDir(), "--remote-debugging-port=0"}, flags...)
	cmd := exec.CommandContext(ctx, browser, append(args, page.URL+"/?"+query.Encode())...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it has children
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	var errs strings.Builder
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := cmd.Wait()
		say(fmt.Sprintf("the browser ended: %v\n%s", err, errs.String()))
	}()
	t.Cleanup(func() {
		page.CloseClientConnections()
		cancel()
		<-ended
	})
	return p, over
}

// The example page sends events in a session, with a certificate that the browser was told to trust.
func TestChromiumSendsOverWebTransport(t *testing.T) {
	p, over := browse(t, url.Values{"stream": {"web"}, "events": {"500"}}, func(origin string) (*process, []string) {
		p := startGateway(t, t.TempDir(), append(onQUIC, "--set", "http.cors.origins=["+origin+"]")...)
		at := strings.TrimPrefix(p.quicURL(), "https://")
		return p, []string{"--origin-to-force-quic-on=" + at, "--ignore-certificate-errors-spki-list=" + p.fingerprint()}
	})
	if said := <-over; !strings.Contains(said, `done {"accepted":500,"rejected":0,"duplicates":0}`) {
		t.Fatalf("the page says %s\n%s", said, p.log)
	}
	p.wantNumbers(500)
	if code := p.terminate(); code != 0 {
		t.Errorf("exit %d; log:\n%s", code, p.log)
	}
}

// The page knows a certificate of a few days by its hash, and needs no flag of the browser. The gateway is killed meanwhile: the
// page goes on with its session, and nothing is lost or stored twice.
func TestF58ChromiumOverAKill(t *testing.T) {
	if os.Getenv("HEADGATE_NETWORK") == "" {
		t.Skip("set HEADGATE_NETWORK (make test-network): a browser takes its time before it connects again")
	}
	cert, key := filepath.Join(t.TempDir(), "tls.crt"), filepath.Join(t.TempDir(), "tls.key")
	newAuthority(t).issue(2, cert, key)
	text, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	hash := sha256.Sum256(block.Bytes)
	data, at := t.TempDir(), freeport.UDP(t)
	var args []string
	p, over := browse(t, url.Values{"stream": {"web"}, "events": {"5000"}, "hash": {hex.EncodeToString(hash[:])}}, func(origin string) (*process, []string) {
		args = []string{"--set", "quic.listen=" + at, "--set", "http.cors.origins=[" + origin + "]", "--set", "http.tls.listen=127.0.0.1:0", "--set", "http.tls.cert=" + cert, "--set", "http.tls.key=" + key}
		return startGateway(t, data, args...), nil
	})
	p.until("the page has sent something", func() bool {
		return strings.Contains(p.get("/metrics"), `headgate_ingest_events_total{result="accepted",stream="web"}`)
	})
	p.kill()
	p = startGateway(t, data, args...)
	said := <-over
	if !strings.Contains(said, "done ") {
		t.Fatalf("the page says %s\n%s", said, p.log)
	}
	t.Log(said)
	p.wantNumbers(5000)
}

// wantNumbers checks that the numbers up to n are stored, each once.
func (p *process) wantNumbers(n int) {
	p.t.Helper()
	rows := p.tail("web")
	seen := map[string]bool{}
	for _, r := range rows {
		seen[r.Data] = true
	}
	if len(rows) != n || len(seen) != n || !seen[fmt.Sprintf(`{"n":%d}`, n-1)] {
		p.t.Errorf("%d events are stored, %d different ones, want %d", len(rows), len(seen), n)
	}
}
