package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// aioquic is a Python that has it: HEADGATE_TEST_PYTHON names one (make test-python makes it).
func aioquic(t *testing.T) string {
	t.Helper()
	python := os.Getenv("HEADGATE_TEST_PYTHON")
	if python == "" {
		python = "python3"
	}
	if exec.Command(python, "-c", "import aioquic").Run() != nil {
		t.Skip("python3 with aioquic is not there")
	}
	return python
}

// What sending again does not mend is said at once, with what to do, and not tried again.
func TestPythonSendsOnceWhatIsRefused(t *testing.T) {
	python, data := aioquic(t), t.TempDir()
	file := filepath.Join(t.TempDir(), "events")
	if err := os.WriteFile(file, []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TOKEN", "of-one-who-may-send")
	p := startGateway(t, data, append(onQUIC, "--set", "auto_create=false", "--set", "streams={web: {}}",
		"--set", `auth.tokens=[{id: one, secret: "env:TOKEN", streams: ["*"], actions: [send]}]`)...)
	at, ca := strings.TrimPrefix(p.quicURL(), "https://"), filepath.Join(data, "development.crt")
	for want, args := range map[string][]string{
		"a self-signed one needs --ca FILE": {"--address", at, "--stream", "web"},
		"refused: unauthorized":             {"--address", at, "--stream", "web", "--ca", ca, "--token", "another"},
		"refused: unknown_stream":           {"--address", at, "--stream", "other", "--ca", ca, "--token", "of-one-who-may-send"},
		"it must be a file of certificates": {"--address", at, "--stream", "web", "--ca", file},
		"not HOST:PORT":                     {"--address", "localhost", "--stream", "web", "--ca", ca},
	} {
		out, err := exec.Command(python, append(append([]string{"../../examples/quic-python/send.py"}, args...), file)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) || strings.Contains(string(out), "connection: ") || strings.Contains(string(out), "Traceback") {
			t.Errorf("%q should be said, and nothing tried again: %v\n%s", want, err, out)
		}
	}
}

// The example in Python is another implementation of the protocol, on another one of QUIC.
func TestPythonSendsInASession(t *testing.T) {
	python, data := aioquic(t), t.TempDir()
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
