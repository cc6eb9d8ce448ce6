package faults

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// say records and prints a fault that is one run.
func say(t *testing.T, r result) {
	t.Helper()
	fmt.Println(line([]result{record(t, r)}))
}

// under has the load sent for so long while the gateway lives.
func (b *bed) under(g *gateway, d time.Duration) {
	quit := make(chan struct{})
	time.AfterFunc(d, func() { close(quit) })
	b.load.run(g.http, quit)
}

// get returns a status and a body of the admin API.
func (g *gateway) get(path string) (int, string) {
	g.t.Helper()
	resp, err := http.Get(g.admin + path)
	if err != nil {
		g.t.Fatalf("%v; log:\n%s", err, g.log)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// post sends one event and returns status, answer and how long it took.
func (g *gateway) post(stream, query, body string) (status int, answer string, took time.Duration) {
	g.t.Helper()
	began := time.Now()
	resp, err := http.Post(g.http+"/v1/streams/"+stream+"/events?"+query, "application/x-ndjson", strings.NewReader(body))
	if err != nil {
		g.t.Fatalf("%v; log:\n%s", err, g.log)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return resp.StatusCode, string(text), time.Since(began)
}

// F5: a sync of the spool fails, once or for good, while the backend is away. For good, nothing more is acknowledged as
// durable, the process lives and says what is wrong. What was acknowledged is there after a kill.
func TestF5FsyncFails(t *testing.T) {
	b := newBed(t, result{Fault: "F5", What: "fsync of the spool fails"}).onNode().with("http.request_timeout=500ms")
	for _, at := range []string{"error@3", "error@1", "error@5+", "error@1+"} {
		b.node.down.Store(10)
		before := b.load.acked()
		g := start(t, b.data, "spool.sync="+at, b.settings...)
		quit, over := make(chan struct{}), make(chan struct{})
		go func() { b.load.run(g.http, quit); close(over) }()
		g.until("a write has failed", func() bool { return g.metric("headgate_spool_failed_writes_total") > 0 })
		<-time.After(200 * time.Millisecond)
		close(quit)
		<-over
		if !strings.HasSuffix(at, "+") { // behind an error that goes away it recovers, on a slow machine later
			g.until("events are acknowledged again", func() bool {
				if b.load.acked() == before {
					b.under(g, 200*time.Millisecond)
				}
				return b.load.acked() > before
			})
		}
		if after := b.load.acked(); after > before && at == "error@1+" {
			t.Errorf("%s: %d events were acknowledged", at, after-before)
		}
		if strings.HasSuffix(at, "+") {
			if status, text := g.get("/readyz"); status != 503 || !strings.Contains(text, "spool") {
				t.Errorf("%s: /readyz says %d %s", at, status, text)
			}
			if status, _ := g.get("/livez"); status != 200 {
				t.Errorf("%s: /livez says %d", at, status)
			}
		}
		g.kill()
		b.Cycles++
	}
	say(t, b.finish())
}

// F10: a sync takes a second. With group commit nobody waits for more than four of them (the one under way, that of the
// frame before, and again one under way and the own), nobody is refused, and at accepted nobody waits. The node takes
// nothing, or it would be faster than the disk.
func TestF10SlowFsync(t *testing.T) {
	long(t)
	b := newBed(t, result{Fault: "F10", What: "fsync takes 1 s", Cycles: 1}).onNode().with("http.request_timeout=20s")
	b.load = newLoad(0, 20, 20)
	b.load.levels = []string{"accepted", "durable"}
	b.node.down.Store(10)
	g := start(t, b.data, "spool.sync=delay:1s@1+", b.settings...)
	b.under(g, 20*time.Second)
	for _, c := range b.load.clients {
		if c.refused > 0 {
			t.Errorf("client %d was refused %d times", c.id, c.refused)
		}
	}
	accepted, durable := b.load.waits("accepted"), b.load.waits("durable")
	if slowest := percentile(durable, 100); slowest > 6*time.Second {
		t.Errorf("a request waited %s for the disk", slowest)
	}
	g.kill()
	r := b.finish()
	r.Note = fmt.Sprintf("accepted p50 %.1f ms, p99 %.0f ms; durable p50 %.1f s, p99 %.1f s", ms(percentile(accepted, 50)), ms(percentile(accepted, 99)),
		percentile(durable, 50).Seconds(), percentile(durable, 99).Seconds())
	say(t, r)
}

func ms(d time.Duration) float64 { return d.Seconds() * 1000 }

// F12: a second process on a data folder ends at once with the way out, and the first takes no notice.
func TestF12TwoProcesses(t *testing.T) {
	b := newBed(t, result{Fault: "F12", What: "a second process on the folder", Cycles: 1})
	g := start(t, b.data, "", b.settings...)
	b.under(g, 100*time.Millisecond)
	bin, _ := product()
	second := exec.Command(bin, "serve", "--data", b.data, "--set", "http.listen=127.0.0.1:0", "--set", "admin.listen=127.0.0.1:0")
	out, err := second.CombinedOutput()
	if code := second.ProcessState.ExitCode(); err == nil || code <= 0 || !strings.Contains(string(out), "in use by process") {
		t.Errorf("exit %d: %s", code, out)
	}
	b.under(g, 100*time.Millisecond)
	g.kill()
	say(t, b.finish())
}

// F29: SIGTERM under load delivers everything that was acknowledged, also at accepted; a second signal stops at once and
// loses nothing that is durable.
func TestF29Terminate(t *testing.T) {
	b := newBed(t, result{Fault: "F29", What: "SIGTERM under load"}).with("drain.timeout=5m")
	for range scale(1, 5, 1<<30) {
		g := start(t, b.data, "", b.settings...)
		over := make(chan struct{})
		go func() { b.load.run(g.http, nil); close(over) }()
		<-time.After(200 * time.Millisecond)
		if code := g.stop(); code != 0 {
			t.Errorf("exit %d; log:\n%s", code, g.log)
		}
		<-over
		b.Cycles++
	}
	r := b.finish()
	if r.Gone > 0 {
		t.Errorf("%d events acknowledged as accepted are gone after orderly stops", r.Gone)
	}
	say(t, r)

	b = newBed(t, result{Fault: "F29", What: "SIGTERM twice, with a dead backend", Cycles: 1}).onNode().with("http.request_timeout=1h", "drain.timeout=1h")
	b.node.down.Store(10)
	g := start(t, b.data, "", b.settings...)
	over := make(chan struct{})
	go func() { b.load.run(g.http, nil); close(over) }()
	g.until("requests wait for the backend", func() bool { return g.metric("headgate_spool_frames") > 0 })
	_ = g.cmd.Process.Signal(os.Interrupt)
	g.until("it drains", func() bool { return strings.Contains(g.log.String(), `"draining"`) })
	g.until("another signal ends it", func() bool { // the first of them may come before the default action holds again
		_ = g.cmd.Process.Signal(os.Interrupt)
		return g.died(10 * time.Millisecond)
	})
	<-over
	say(t, b.finish())
}

// F32: what the load started has ended when it is over.
func TestF32NothingLeaks(t *testing.T) {
	long(t)
	b := newBed(t, result{Fault: "F32", What: "leaks after load"})
	g := start(t, b.data, "", b.settings...)
	b.under(g, 100*time.Millisecond)
	g.idle()
	http.DefaultClient.CloseIdleConnections()
	files, routines := g.open(t, store), g.metric("go_goroutines")
	for range 20 {
		b.under(g, 200*time.Millisecond)
		b.Cycles++
	}
	g.idle()
	http.DefaultClient.CloseIdleConnections()
	g.until("goroutines and files are as many as before", func() bool {
		http.DefaultClient.CloseIdleConnections()
		b.Note = fmt.Sprintf("goroutines %.0f, then %.0f; files %d, then %d", routines, g.metric("go_goroutines"), files, g.open(t, store))
		return g.metric("go_goroutines") <= routines && g.open(t, store) <= files+1
	})
	g.kill()
	say(t, b.finish())
}

// store is in the paths of the embedded server's files: there are as many as events fill, and from the watch's first look on
// up to 256 are held open.
const store = "/jetstream/"

// open returns how many files the process has open, but for those with except in their paths.
func (g *gateway) open(t *testing.T, except string) (n int) {
	t.Helper()
	fds := fmt.Sprintf("/proc/%d/fd", g.cmd.Process.Pid)
	all, err := os.ReadDir(fds)
	if err != nil {
		t.Skip("SKIPPED: no /proc here")
	}
	for _, fd := range all {
		if name, err := os.Readlink(filepath.Join(fds, fd.Name())); err == nil && (except == "" || !strings.Contains(name, except)) {
			n++
		}
	}
	return n
}
