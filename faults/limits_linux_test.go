package faults

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// F11: the file system becomes one that takes nothing, and stays so. The process lives, says so, and acknowledges nothing
// as durable or delivered.
func TestF11TheDiskTakesNothingAnyMore(t *testing.T) {
	long(t)
	for _, backend := range []string{"JetStream", "a node"} {
		b := newBed(t, result{Fault: "F11", What: "the disk takes nothing any more, " + backend, Cycles: 1}).with("http.request_timeout=500ms")
		if backend != "JetStream" {
			b.onNode().node.down.Store(10)
		}
		d := newDisk(t, 512<<20)
		b.data = filepath.Join(d.path, "data")
		g := start(t, b.data, "", b.settings...)
		b.under(g, 200*time.Millisecond)
		_ = d.cut(b.load) // nobody sends
		before := b.load.acked()
		b.under(g, time.Second)
		if after := b.load.acked(); after != before {
			t.Errorf("%s: %d events were acknowledged", backend, after-before)
		}
		if g.died(0) {
			t.Fatalf("%s: it ended; log:\n%s", backend, g.log)
		}
		if status, text := g.get("/readyz"); status != 503 {
			t.Errorf("%s: /readyz says %d %s", backend, status, text)
		}
		if status, _ := g.get("/livez"); status != 200 {
			t.Errorf("%s: /livez says %d", backend, status)
		}
		g.kill()
		d.again()
		say(t, b.finish())
	}
}

// F30: with few open files and many clients, those that are in are served; when they go, others get in.
func TestF30FewFiles(t *testing.T) {
	long(t)
	b := newBed(t, result{Fault: "F30", What: "64 open files for 200 clients", Cycles: 1})
	b.load = newLoad(0, 200, 20)
	bin, err := product()
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-c", `ulimit -n 64 && exec "$0" "$@"`, bin, "serve", "--data", b.data,
		"--set", "http.listen=127.0.0.1:0", "--set", "admin.listen=127.0.0.1:0"}, b.settings...)
	g, ready := run(t, b.data, exec.Command("sh", args...))
	if !ready {
		t.Fatalf("it ended; log:\n%s", g.log)
	}
	for range 5 { // clients that are turned away leave, and come again
		b.under(g, time.Second)
	}
	if n := g.open(t, ""); n > 64 {
		t.Errorf("%d files are open", n)
	}
	if b.load.acked() == 0 {
		t.Error("nobody was served")
	}
	g.kill()
	say(t, b.finish())
}

// F31: under a hard cap of memory the kernel would kill it at the first byte too many. It takes what it can and refuses the
// rest.
func TestF31MemoryCap(t *testing.T) {
	long(t)
	const limit = 512 << 20
	group := filepath.Join("/sys/fs/cgroup/memory", fmt.Sprintf("headgate-faults-%d", os.Getpid()))
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Skipf("SKIPPED: no memory cgroup can be made: %v", err)
	}
	b := newBed(t, result{Fault: "F31", What: "512 MiB of memory, 60 clients with large requests", Cycles: 1}).onNode().
		with("http.request_timeout=2s", "spool.max_bytes=1GiB")
	b.node.down.Store(10)
	b.load = newLoad(0, 60, 20000)
	if err := os.WriteFile(filepath.Join(group, "memory.limit_in_bytes"), []byte(strconv.Itoa(limit)), 0o644); err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	bin, err := product()
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-c", `echo $$ > "$GROUP/cgroup.procs" && exec "$0" "$@"`, bin, "serve", "--data", b.data,
		"--set", "http.listen=127.0.0.1:0", "--set", "admin.listen=127.0.0.1:0"}, b.settings...)
	cmd := exec.Command("sh", args...)
	cmd.Env = append(os.Environ(), "GROUP="+group)
	g, ready := run(t, b.data, cmd)
	if !ready {
		t.Fatalf("it ended; log:\n%s", g.log)
	}
	t.Cleanup(func() { g.kill(); os.Remove(group) })
	b.under(g, 20*time.Second)
	if g.died(0) {
		t.Fatalf("it ended: %v", g.cmd.ProcessState)
	}
	peak := g.peak(t)
	g.kill()
	r := b.finish()
	r.Note = fmt.Sprintf("peak %d MiB resident", peak>>20)
	say(t, r)
}

// peak returns the most memory that was resident.
func (g *gateway) peak(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	n := 0
	if _, err := fmt.Sscan(rest, &n); err != nil {
		t.Fatal(err)
	}
	return n << 10
}
