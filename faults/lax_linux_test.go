package faults

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/freeport"
)

// lax is a process of an external NATS server with default options, which syncs every two minutes, on a disk of its own.
type lax struct {
	t               *testing.T
	disk            *disk
	bin, conf, addr string
	cmd             *exec.Cmd
}

func newLax(t *testing.T) *lax {
	t.Helper()
	s := &lax{t: t, disk: newDisk(t, 512<<20), bin: filepath.Join(t.TempDir(), "nats-server"), addr: freeport.TCP(t)}
	s.conf = s.bin + ".conf"
	build := exec.Command("go", "build", "-o", s.bin, "github.com/nats-io/nats-server/v2")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text := fmt.Sprintf("listen: %q\nmax_payload: 8MB\njetstream {store_dir: %q}\n", s.addr, filepath.Join(s.disk.path, "nats"))
	if err := os.WriteFile(s.conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.kill() })
	s.start()
	return s
}

func (s *lax) start() {
	s.t.Helper()
	s.cmd = exec.Command(s.bin, "-c", s.conf)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	for deadline := time.Now().Add(enough); ; <-time.After(20 * time.Millisecond) {
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

func (s *lax) kill() {
	s.cmd.Process.Kill() // an error: it has ended already
	_ = s.cmd.Wait()
}

// F19: the power of an external NATS server is cut, which has confirmed what it had not synced. The gateway names what the
// server may do at its start, notices what it lost, and sends that again from the tail of the spool.
func TestF19AServerThatDoesNotSync(t *testing.T) {
	long(t)
	server := newLax(t)
	b := newBed(t, result{Fault: "F19", What: "power cut of an external NATS server that does not sync"}).with("spool.max_bytes=512MiB",
		fmt.Sprintf("backends={lake: {jetstream: {url: \"nats://%s\"}}}", server.addr), `streams={s: {backend: lake, key: {json: /k}, id: {json: /id}, partitions: 4}}`)
	g := start(t, b.data, "", b.settings...)
	if !strings.Contains(g.log.String(), "sync_interval: always") {
		t.Errorf("the start does not say that the server may not sync:\n%s", g.log)
	}
	for range scale(1, 3, 1000) {
		quit, over := make(chan struct{}), make(chan struct{})
		go func() { b.load.run(g.http, quit); close(over) }()
		<-time.After(700 * time.Millisecond)
		server.disk.cut(b.load) // our own disk has its power: what was answered counts
		server.kill()
		server.disk.again()
		server.start()
		<-time.After(500 * time.Millisecond)
		close(quit)
		<-over
		g.idle()
		b.Cycles++
	}
	resent := g.metric("headgate_backend_resent_events_total")
	if lost := g.metric("headgate_backend_lost_events_total"); resent == 0 || lost > 0 {
		t.Errorf("%.0f events were sent again, %.0f are said to be lost", resent, lost)
	}
	if _, text := g.get("/readyz?verbose"); !strings.Contains(text, "sent again") {
		t.Errorf("/readyz says %s", text)
	}
	if code := g.stop(); code != 0 {
		t.Errorf("exit %d; log:\n%s", code, g.log)
	}
	b.Note = fmt.Sprintf("%.0f events that it had lost came again", resent)
	say(t, b.finish())
}
