package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headgate-io/headgate/internal/freeport"
)

// natsServer is a process of the NATS server whose module we are built with.
type natsServer struct {
	t    *testing.T
	conf string
	addr string
	cmd  *exec.Cmd
}

var natsBinary = sync.OnceValues(func() (string, error) {
	b, err := product()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(b.dir, "nats-server")
	return bin, goBuild(nil, "-o", bin, "github.com/nats-io/nats-server/v2")
})

// newNATS makes a server that is not started yet.
func newNATS(t *testing.T, settings string) *natsServer {
	t.Helper()
	dir := t.TempDir()
	s := &natsServer{t: t, conf: filepath.Join(dir, "nats.conf"), addr: freeport.TCP(t)}
	text := fmt.Sprintf("listen: %q\nserver_name: n1\njetstream {store_dir: %q, sync_interval: always}\n%s\n", s.addr, filepath.Join(dir, "data"), settings)
	if err := os.WriteFile(s.conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *natsServer) url() string { return "nats://" + s.addr }

func (s *natsServer) start() {
	s.t.Helper()
	bin, err := natsBinary()
	if err != nil {
		s.t.Fatal(err)
	}
	s.cmd = exec.Command(bin, "-c", s.conf)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	cmd := s.cmd
	s.t.Cleanup(func() { s.end(cmd) })
	for deadline := time.Now().Add(2 * time.Minute); ; <-time.After(20 * time.Millisecond) {
		c, err := net.Dial("tcp", s.addr)
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatal(err)
		}
	}
}

// kill is kill -9.
func (s *natsServer) kill() { s.end(s.cmd) }

func (s *natsServer) end(cmd *exec.Cmd) {
	if cmd.ProcessState == nil {
		cmd.Process.Kill()
		cmd.Wait()
	}
}

// TestN04ExternalNATSKilled kills the NATS server under load, twice. Readiness names it meanwhile; what was answered
// with 200 is there, once, in order.
func TestN04ExternalNATSKilled(t *testing.T) {
	server := newNATS(t, "max_payload: 8MB")
	server.start()
	data := t.TempDir()
	settings := []string{
		"--set", fmt.Sprintf("backends={bus: {jetstream: {url: %q, streams: 2, max_bytes: 1GiB}}}", server.url()),
		"--set", "streams={s: {backend: bus, key: {json: /k}, partitions: 4}}",
	}
	p := startGateway(t, data, settings...)
	producers := make([]*producer, 8)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: len(producers)}, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	var wg sync.WaitGroup
	for i := range producers {
		producers[i] = &producer{key: fmt.Sprintf("producer-%d", i), acked: map[int]bool{}}
		wg.Go(func() { producers[i].run(client, p.http+"/v1/streams/s/events?ack=delivered") })
	}
	for range 2 {
		<-time.After(300 * time.Millisecond)
		server.kill()
		p.until("readiness names the server", func() bool {
			ready := p.get("/readyz")
			return strings.Contains(ready, `"ready":false`) && strings.Contains(ready, "backend bus ("+server.url()+")")
		})
		server.start()
		p.until("it is ready again", func() bool { return strings.Contains(p.get("/readyz"), `"ready":true`) })
	}
	p.answers(producers)
	if code := p.terminate(); code != 0 {
		t.Errorf("exit %d\n%s", code, p.log)
	}
	wg.Wait()

	p = startGateway(t, data, settings...)
	checkNothingLost(t, p.tail("s"), producers)
	checkSpread(t, server)
	if out, _ := p.headgate(0, "stream", "purge", "s", "--keep", "0"); !strings.Contains(out, "runs removed") {
		t.Errorf("purge: %s", out)
	}
	if status, answer := p.post("s", `{"k":"after the purge","n":0}`, "ack=delivered"); status != 200 {
		t.Errorf("%d %s", status, answer)
	}
}

// checkSpread reads with a plain NATS client: partitions by remainder, payloads of lines in zstd.
func checkSpread(t *testing.T, server *natsServer) {
	t.Helper()
	nc, err := nats.Connect(server.url(), nats.Timeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"HEADGATE_s": "[headgate.s.0.* headgate.s.2.*]", "HEADGATE_s_K1": "[headgate.s.1.* headgate.s.3.*]"} {
		s, err := js.Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		info := s.CachedInfo()
		if got := fmt.Sprint(info.Config.Subjects); got != want || info.Config.MaxBytes <= 0 {
			t.Errorf("%s: subjects %s, max_bytes %d", name, got, info.Config.MaxBytes)
		}
		if info.State.Msgs == 0 {
			t.Logf("%s is empty", name)
			continue
		}
		m, err := s.GetMsg(t.Context(), info.State.FirstSeq)
		for seq := info.State.FirstSeq; err == nil && m.Header.Get("Headgate-Marker") != "" && seq < info.State.LastSeq; {
			seq++
			m, err = s.GetMsg(t.Context(), seq)
		}
		if err != nil {
			t.Fatal(err)
		}
		d, err := zstd.NewReader(bytes.NewReader(m.Data))
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		var text bytes.Buffer
		if _, err := d.WriteTo(&text); err != nil || !strings.HasPrefix(text.String(), `{"k":"producer-`) {
			t.Errorf("%.40s, %v", text.String(), err)
		}
	}
}

// refuses runs a gateway that must not start but end with code, and returns what it says.
func refuses(t *testing.T, code int, args ...string) string {
	t.Helper()
	b, err := product()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(b.headgate, append([]string{"serve", "--data", t.TempDir(), "--set", "http.listen=127.0.0.1:0", "--set", "admin.listen=127.0.0.1:0"}, args...)...)
	out, err := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("it ended with %v, want exit %d", err, code)
	}
	return string(out)
}

func TestExternalNATSAwayAtStart(t *testing.T) {
	t.Parallel() // it waits for ten seconds
	server := newNATS(t, "")
	out := refuses(t, 1, "--set", fmt.Sprintf("backends={bus: {jetstream: {url: %q}}}", "nats://user:secret@"+server.addr))
	if !strings.Contains(out, "backends.bus: connect to nats://user:xxxxx@"+server.addr) || strings.Contains(out, "secret") {
		t.Errorf("the URL is not named, or with its password:\n%s", out)
	}
}

// TestExternalNATSLargestEvent: a NATS server takes 1 MiB unless told otherwise, and the largest event of a stream too.
func TestExternalNATSLargestEvent(t *testing.T) {
	server := newNATS(t, "")
	server.start()
	bus := []string{"--set", fmt.Sprintf("backends={bus: {jetstream: {url: %q}}}", server.url())}
	data := t.TempDir()
	out := refuses(t, 2, append(bus, "--data", data, "--set", "streams={refused: {backend: bus}}")...)
	if !strings.Contains(out, "limits.event") || !strings.Contains(out, "960KiB") || !strings.Contains(out, server.url()) {
		t.Errorf("%s", out)
	}
	p := startGateway(t, data, append(bus, "--set", "streams={s: {backend: bus, limits: {event: 960KiB}}}")...)
	if ready := p.get("/readyz"); !strings.Contains(ready, `"ready":true`) {
		t.Errorf("the start that was refused left its stream behind: %s", ready)
	}
	big := `{"a":"` + strings.Repeat("x", 960<<10-8) + `"}`
	if status, answer := p.post("s", big, "ack=delivered"); status != 200 {
		t.Errorf("%d %s", status, answer)
	}
	if rows := p.tail("s"); len(rows) != 1 || rows[0].Data != big {
		t.Errorf("%d rows", len(rows))
	}
	if code := p.terminate(); code != 0 || strings.Contains(p.log.String(), "backend is away") {
		t.Errorf("a stop ends with %d and this log:\n%s", code, p.log)
	}
}

// F15, A02: a gateway that has reached its NATS server before starts while that is away, takes durable events for partitions that
// never had one, is killed and does so again; when the server is back everything is delivered, once and in order.
func TestF15StartWhileExternalNATSIsAway(t *testing.T) {
	server, data := newNATS(t, "max_payload: 4MB"), t.TempDir()
	server.start()
	args := []string{"--set", fmt.Sprintf("backends={bus: {jetstream: {url: %q}}}", server.url()), "--set", "streams={s: {backend: bus, partitions: 3, key: {json: /k}}}"}
	p := startGateway(t, data, args...)
	want := map[string][]string{}
	send := func(key string, n int) {
		event := fmt.Sprintf(`{"k":%q,"n":%d}`, key, n)
		if status, answer := p.post("s", event, "ack=durable"); status != 200 {
			t.Fatalf("%s: %d %s\n%s", event, status, answer, p.log)
		}
		want[key] = append(want[key], event)
	}
	send("a", 0)
	p.kill()
	server.kill()
	for life := range 2 {
		p = startGateway(t, data, args...)
		for n := range 3 {
			for _, key := range []string{"a", "b", "c", "d", "e"} {
				send(key, 10*life+n+1)
			}
		}
		if status, answer := p.ask("GET", p.admin+"/readyz?verbose", "", ""); status != 503 || !strings.Contains(answer, server.addr) {
			t.Errorf("readiness: %d %s", status, answer)
		}
		p.kill()
	}
	p = startGateway(t, data, args...)
	send("a", 99)
	server.start()
	p.until("all is delivered", func() bool {
		status, _ := p.ask("GET", p.admin+"/v1/streams/s/events?from=start", "", "") // its readers have a connection of their own
		if ready, _ := p.ask("GET", p.admin+"/readyz", "", ""); status != 200 || ready != 200 {
			return false
		}
		got := map[string][]string{}
		for _, r := range p.tail("s") {
			got[*r.Key] = append(got[*r.Key], r.Data)
		}
		return fmt.Sprint(got) == fmt.Sprint(want)
	})
}
