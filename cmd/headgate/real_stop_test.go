package main

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestP02AStopSaysWhatWasNotDelivered: a node that takes connections and never answers. What is in the spool is named; what
// could not be written there either is given up.
func TestP02AStopSaysWhatWasNotDelivered(t *testing.T) {
	node, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	data := t.TempDir()
	p := startGateway(t, data, "--set", `backends.lake={webhook: {nodes: ["http://`+node.Addr().String()+`/"]}}`,
		"--set", "streams={a: {backend: lake}, b: {backend: lake}, c: {}}", "--set", "drain.timeout=5s")
	if err := os.RemoveAll(filepath.Join(data, "spool", "b")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "spool", "b"), nil, 0o600); err != nil { // or the folder would be made again
		t.Fatal(err)
	}
	for stream, events := range map[string]int{"a": 7, "b": 12, "c": 3} {
		if status, answer := p.post(stream, strings.Repeat("{}\n", events), "ack=accepted"); status != 202 {
			t.Fatal(status, answer)
		}
	}
	if code := p.terminate(); code != 1 {
		t.Errorf("exit %d", code)
	}
	for _, want := range []string{`"spooled":{"a":7}`, `"undelivered":{"b":12}`, "12 events are given up, because backend lake"} {
		if !strings.Contains(p.log.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, p.log)
		}
	}
}

// TestNothingIsAcknowledgedIntoADataFolderThatIsGone, for longer than a moment.
func TestNothingIsAcknowledgedIntoADataFolderThatIsGone(t *testing.T) {
	for _, gone := range []string{"", "control"} {
		data := filepath.Join(t.TempDir(), "data")
		p := startGateway(t, data)
		if status, answer := p.post("w", "{}\n"); status != 200 {
			t.Fatal(status, answer)
		}
		if err := os.RemoveAll(filepath.Join(data, gone)); err != nil {
			t.Fatal(err)
		}
		p.wait()
		if code := p.cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(p.log.String(), "was removed or replaced") {
			t.Errorf("exit %d\n%s", code, p.log)
		}
	}
}

func TestErrorsAtTheStartSayWhatToDo(t *testing.T) {
	b, err := product()
	if err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"set http.listen to another address":   {"--set", "http.listen=" + taken.Addr().String(), "--set", "admin.listen=127.0.0.1:0"},
		"set admin.listen to another address":  {"--set", "admin.listen=" + taken.Addr().String(), "--set", "http.listen=127.0.0.1:0"},
		"name another, or give another --data": {"--data", filepath.Join(file, "data")},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, b.headgate, append([]string{"serve", "--data", filepath.Join(t.TempDir(), "data")}, args...)...)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}

func TestTailOfAPartitionThatDoesNotExist(t *testing.T) {
	p := startGateway(t, t.TempDir())
	if status, answer := p.post("w", "{}\n"); status != 200 {
		t.Fatal(status, answer)
	}
	if _, stderr := p.headgate(2, "tail", "--stream", "w", "--partition", "77", "--wait", "1s"); !strings.Contains(stderr, "no partition 77, only 0 to 15") {
		t.Errorf("%s", stderr)
	}
}
