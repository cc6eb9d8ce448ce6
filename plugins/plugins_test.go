package plugins

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/jsonscan"
)

// hostOf returns a host that lets guests trap as often as they like.
func hostOf(t testing.TB, cfg Config) *Host {
	t.Helper()
	cfg.Patient = true
	return strictHostOf(t, cfg)
}

func strictHostOf(t testing.TB, cfg Config) *Host {
	t.Helper()
	h, err := New(cfg, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func loadOf(t testing.TB, h *Host, wasm []byte) *Module {
	t.Helper()
	m, err := h.Load(context.Background(), wasm)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, m.Close()) })
	return m
}

func chainOf(t testing.TB, h *Host, steps ...Step) *Chain {
	t.Helper()
	c, err := h.NewChain(context.Background(), steps, Rules{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, c.Retire()) })
	return c
}

func closed(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// run sends events through one scripted guest under a policy.
func run(t testing.TB, p Policy, lines ...string) *event.Batch {
	t.Helper()
	h := hostOf(t, Config{Instances: 1, MaxMemory: 4 << 20})
	c := chainOf(t, h, Step{Name: "scripted", Module: loadOf(t, h, scripted(false).bytes()), OnError: p})
	b := batchOf(lines...)
	process(t, c, b)
	return b
}

func process(t testing.TB, c *Chain, b *event.Batch) {
	t.Helper()
	if err := c.Process(context.Background(), b); err != nil {
		t.Fatal(err)
	}
}

func batchOf(lines ...string) *event.Batch {
	b := &event.Batch{Stream: "web"}
	for _, line := range lines {
		b.Events = append(b.Events, event.Event{Data: []byte(line)})
	}
	return b
}

// outcomes writes a batch's events one a line: verdict, and key or code.
func outcomes(b *event.Batch) string {
	codes := map[int]event.Error{}
	for _, e := range b.Errors {
		codes[e.Index] = e
	}
	var out bytes.Buffer
	for i, e := range b.Events {
		out.WriteString(e.Verdict.String())
		if e.Verdict == event.Rejected {
			out.WriteString(" " + string(codes[i].Code))
		} else if e.HasKey {
			out.WriteString(" key=" + string(e.Key))
		}
		out.WriteString("\n")
	}
	return out.String()
}

// compileCommand makes the test binary the process that compiles.
const compileCommand = "compile-module"

// scratch holds the example plugin and its compiled form, which take seconds to make.
var scratch string

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == compileCommand {
		if err := CompileModule(os.Args[2:], os.Stdin, os.Stdout); err != nil {
			panic(err)
		}
		return
	}
	var err error
	if scratch, err = os.MkdirTemp("", "headgate-plugins-"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(scratch)
	os.Exit(code)
}

// example returns examples/plugins/accesslog, built once for all tests.
func example(t testing.TB) []byte {
	t.Helper()
	wasm, err := buildExample()
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

var (
	buildExample = sync.OnceValues(func() ([]byte, error) { return buildGo("../examples/plugins/accesslog") })
	buildGuest   = sync.OnceValues(func() ([]byte, error) { return buildGo("./testdata/goguest") })
)

func buildGo(pkg string) ([]byte, error) {
	out := filepath.Join(scratch, filepath.Base(pkg)+".wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", out, pkg)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	return os.ReadFile(out)
}

func pointers(t testing.TB, text string) []jsonscan.Pointer {
	t.Helper()
	p, err := jsonscan.ParsePointer(text)
	if err != nil {
		t.Fatal(err)
	}
	return []jsonscan.Pointer{p}
}
