package faults

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// product is the real binary with its fail points, built once.
var product = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "headgate-faults-")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "headgate")
	cmd := exec.Command("go", "build", "-tags", "failpoints", "-o", bin, "../cmd/headgate")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return bin, fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
	}
	return bin, nil
})

// gateway is a process of it on a data folder.
type gateway struct {
	t           testing.TB
	data        string
	cmd         *exec.Cmd
	exited      chan struct{}
	log         *syncBuffer
	http, admin string // base URLs
	recovery    time.Duration
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *syncBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *syncBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// launch starts a gateway on data with a fail point ("" for none); it reports false when it died before it was ready.
func launch(t testing.TB, data, point string, args ...string) (g *gateway, ready bool) {
	t.Helper()
	bin, err := product()
	if err != nil {
		t.Fatal(err)
	}
	args = append([]string{"serve", "--data", data, "--set", "http.listen=127.0.0.1:0", "--set", "admin.listen=127.0.0.1:0", "--set", "quic.listen=none"}, args...)
	cmd := exec.Command(bin, args...)
	cmd.Env = append(os.Environ(), "FAILPOINTS="+point)
	return run(t, data, cmd)
}

// run starts cmd, which runs a gateway on data.
func run(t testing.TB, data string, cmd *exec.Cmd) (g *gateway, ready bool) {
	t.Helper()
	g = &gateway{t: t, data: data, cmd: cmd, exited: make(chan struct{}), log: &syncBuffer{}}
	os.Remove(filepath.Join(data, "run.json"))
	cmd.Stdout, cmd.Stderr = io.Discard, g.log
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { cmd.Wait(); close(g.exited) }()
	t.Cleanup(func() { g.kill() })
	g.until("it is ready", func() bool {
		select {
		case <-g.exited:
			return true
		default:
		}
		doc, err := os.ReadFile(filepath.Join(data, "run.json"))
		var r struct{ HTTP, Admin string }
		if err != nil || json.Unmarshal(doc, &r) != nil {
			return false
		}
		g.http, g.admin, ready = "http://"+r.HTTP, "http://"+r.Admin, true
		return true
	})
	g.recovery = time.Since(began)
	return g, ready
}

// start is launch for one that must become ready.
func start(t testing.TB, data, point string, args ...string) *gateway {
	t.Helper()
	g, ready := launch(t, data, point, args...)
	if !ready {
		t.Fatalf("it ended with %v before it was ready; log:\n%s", g.cmd.ProcessState, g.log)
	}
	return g
}

// enough is how long things may take that happen at once on a quiet machine: how fast anything is is not tested here.
const enough = 5 * time.Minute

// until polls a condition of the world outside this process, for at most enough.
func (g *gateway) until(what string, ok func() bool) {
	g.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(enough); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			g.t.Fatalf("waited in vain: %s; log:\n%s", what, g.log)
		}
	}
}

// kill is kill -9.
func (g *gateway) kill() {
	g.cmd.Process.Kill() // an error: it has ended already
	<-g.exited
}

// died waits for the process to end by itself, for at most so long.
func (g *gateway) died(within time.Duration) bool {
	select {
	case <-g.exited:
		return true
	case <-time.After(within):
		return false
	}
}

// stop is SIGTERM; it returns the exit code.
func (g *gateway) stop() int {
	g.t.Helper()
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		g.t.Fatal(err)
	}
	if !g.died(enough) {
		g.t.Fatalf("long after SIGTERM it runs; log:\n%s", g.log)
	}
	return g.cmd.ProcessState.ExitCode()
}

// metric returns the sum of a metric over its labels, of those series that contain all of having.
func (g *gateway) metric(name string, having ...string) (sum float64) {
	g.t.Helper()
	resp, err := http.Get(g.admin + "/metrics")
	if err != nil {
		g.t.Fatalf("%v; log:\n%s", err, g.log)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		series, value, _ := strings.Cut(lines.Text(), " ")
		labels, ok := strings.CutPrefix(series, name)
		if !ok || labels != "" && labels[0] != '{' {
			continue
		}
		for _, h := range having {
			ok = ok && strings.Contains(labels, h)
		}
		if n, err := strconv.ParseFloat(value, 64); ok && err == nil {
			sum += n
		}
	}
	return sum
}

// idle waits until the backend has everything.
func (g *gateway) idle() {
	g.t.Helper()
	g.until("the backend has everything", func() bool {
		return g.metric("headgate_lane_events") == 0 && g.metric("headgate_spool_events") == 0
	})
}

// row is an event as it is read back.
type row struct {
	Stream    string
	Partition int
	Gateway   string
	Number    uint64
	Data      string

	Error, Detail string // the last line of a reading that broke off
}

// rows reads back what the backend holds of a stream; nothing when there is no such stream.
func (g *gateway) rows(stream string) (all []row) {
	g.t.Helper()
	resp, err := http.Get(g.admin + "/v1/streams/" + stream + "/events?from=start&follow=false")
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound {
		return nil
	}
	for d := json.NewDecoder(resp.Body); ; {
		var r row
		if err := d.Decode(&r); err == io.EOF {
			return all
		} else if err != nil || resp.StatusCode != 200 || r.Error != "" {
			g.t.Fatalf("read %s: behind %d events: status %d, %v, %s %s; log:\n%s", stream, len(all), resp.StatusCode, err, r.Error, r.Detail, g.log)
		}
		all = append(all, r)
	}
}
