package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The example in Python is another implementation of the protocol, on another one of QUIC. HEADGATE_TEST_PYTHON names a
// Python that has aioquic (make test-python makes one).
func TestPythonSendsInASession(t *testing.T) {
	python := os.Getenv("HEADGATE_TEST_PYTHON")
	if python == "" {
		python = "python3"
	}
	if exec.Command(python, "-c", "import aioquic").Run() != nil {
		t.Skip("python3 with aioquic is not there")
	}
	data := t.TempDir()
	p := startGateway(t, data, onQUIC...)
	file := filepath.Join(t.TempDir(), "events.ndjson")
	if err := os.WriteFile(file, []byte(strings.Repeat("{\"n\":1}\n", 3000)+"{\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	send := func(stream string) (code int, out, errs string) {
		cmd := exec.Command(python, "../../examples/quic-python/send.py", "--stream", stream, "--address", strings.TrimPrefix(p.quicURL(), "https://"), "--ca", filepath.Join(data, "development.crt"), file)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		cmd.Run()
		return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
	}
	code, out, errs := send("web")
	if code != 1 || !strings.Contains(out, `{"sent": 3001, "accepted": 3000, "filtered": 0, "rejected": 1, "duplicates": 0, "deadlettered": 0}`) || !strings.Contains(errs, "event 3001: malformed_json") {
		t.Errorf("exit %d %s%s", code, out, errs)
	}
	if rows := p.tail("web"); len(rows) != 3000 {
		t.Errorf("%d are stored", len(rows))
	}
	if code, out, errs := send("NO"); code != 1 || !strings.Contains(errs, "refused: bad_stream_name") {
		t.Errorf("exit %d %s%s", code, out, errs)
	}
}
