package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The tests in real_*_test.go run the real binary, as a user would.

// product builds the binary and the example plugin once for all tests of the package.
var product = sync.OnceValues(func() (built, error) {
	dir, err := os.MkdirTemp("", "headgate-test-")
	if err != nil {
		return built{}, err
	}
	b := built{dir: dir, headgate: filepath.Join(dir, "headgate"), accesslog: filepath.Join(dir, "accesslog.wasm")}
	if err := goBuild(nil, "-o", b.headgate, "."); err != nil {
		return b, err
	}
	return b, goBuild([]string{"GOOS=wasip1", "GOARCH=wasm"}, "-buildmode=c-shared", "-ldflags=-s -w", "-o", b.accesslog,
		"../../examples/plugins/accesslog")
})

type built struct{ dir, headgate, accesslog string }

func goBuild(env []string, args ...string) error {
	cmd := exec.Command("go", append([]string{"build"}, args...)...)
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0"), env...) // static, as make builds it, also under -race
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %v: %w\n%s", args, err, out)
	}
	return nil
}

func TestMain(m *testing.M) {
	code := m.Run()
	if b, err := product(); err == nil {
		os.RemoveAll(b.dir)
	}
	os.Exit(code)
}

// process is a running gateway on ports of its own.
type process struct {
	t           *testing.T
	bin         string
	data        string
	cmd         *exec.Cmd
	wait        func() // returns when it has ended
	log         *logBuffer
	http, admin string // base URLs
}

// logBuffer is a file that a process writes itself, so that what it logged before something else it did can be read as soon as
// that is seen; through a pipe it would come later.
type logBuffer struct{ path string }

// open returns the file to be written, which is made or added to.
func (l *logBuffer) open(t *testing.T) *os.File {
	t.Helper()
	if l.path == "" {
		l.path = filepath.Join(t.TempDir(), "log")
	}
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (l *logBuffer) String() string {
	text, err := os.ReadFile(l.path)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// startGateway runs `headgate serve` on data and waits until it is ready.
func startGateway(t *testing.T, data string, args ...string) *process {
	t.Helper()
	b, err := product()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, bin: b.headgate, data: data, log: &logBuffer{}}
	args = append([]string{"serve", "--data", data, "--set", "http.listen=127.0.0.1:0", "--set", "admin.listen=127.0.0.1:0"}, args...)
	os.Remove(filepath.Join(data, "run.json"))
	p.start(exec.Command(b.headgate, args...))
	return p
}

// start runs cmd, a gateway on p.data, and waits until it is ready.
func (p *process) start(cmd *exec.Cmd) {
	t := p.t
	t.Helper()
	p.cmd = cmd
	log := p.log.open(t)
	defer log.Close()
	p.cmd.Stdout, p.cmd.Stderr = nil, log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.kill() })
	var r struct{ HTTP, Admin string }
	exited := make(chan struct{})
	p.wait = sync.OnceFunc(func() { p.cmd.Wait(); close(exited) })
	go p.wait()
	p.until("run.json appears", func() bool {
		select {
		case <-exited:
			t.Fatalf("it ended with %v; log:\n%s", p.cmd.ProcessState, p.log)
		default:
		}
		doc, err := os.ReadFile(filepath.Join(p.data, "run.json"))
		return err == nil && json.Unmarshal(doc, &r) == nil
	})
	p.http, p.admin = "http://"+r.HTTP, "http://"+r.Admin
}

// until polls a condition of the world outside this process, for at most two minutes.
func (p *process) until(what string, ok func() bool) {
	p.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(2 * time.Minute); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			p.t.Fatalf("waited two minutes: %s; log:\n%s", what, p.log)
		}
	}
}

// kill is kill -9.
func (p *process) kill() {
	p.cmd.Process.Kill() // an error: it has ended already
	p.wait()
}

// terminate is an orderly stop; it returns the exit code.
func (p *process) terminate() int {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	p.wait()
	return p.cmd.ProcessState.ExitCode()
}

// headgate runs a client command against p and returns what it printed; it must exit with code.
func (p *process) headgate(code int, args ...string) (stdout, stderr string) {
	p.t.Helper()
	cmd := exec.Command(p.bin, args...)
	cmd.Env = append(os.Environ(), "HEADGATE_URL="+p.http, "HEADGATE_ADMIN_URL="+p.admin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != code {
		p.t.Fatalf("headgate %s: exit %d, want %d\n%s%s\nlog:\n%s", strings.Join(args, " "), got, code, out.String(), errs.String(), p.log)
	}
	return out.String(), errs.String()
}

// post sends a body of NDJSON and returns status and answer.
func (p *process) post(stream, body string, query ...string) (int, string) {
	p.t.Helper()
	return p.ask("POST", p.http+"/v1/streams/"+stream+"/events?"+strings.Join(query, "&"), "application/x-ndjson", body)
}

// ask makes a request and returns status and answer.
func (p *process) ask(method, url, mediaType, body string) (int, string) {
	p.t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", mediaType)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

// row is a line of `tail -o json`.
type row struct {
	Stream    string
	Partition int
	Gateway   string
	Number    uint64
	Slot      *int
	Epoch     int
	Key       *string
	Data      string
}

// tail reads back everything the backend holds of a stream.
func (p *process) tail(stream string) (rows []row) {
	p.t.Helper()
	out, _ := p.headgate(0, "tail", "--stream", stream, "--from", "start", "--wait", "1s", "-o", "json")
	for line := range strings.Lines(out) {
		var r row
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			p.t.Fatalf("%s: %v", line, err)
		}
		rows = append(rows, r)
	}
	return rows
}
