package main

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

func TestRealGatewayWithTokens(t *testing.T) {
	sender, ops := temporary(t, "sender", "0123456789abcdef-sender\n"), temporary(t, "ops", "0123456789abcdef-ops\n")
	config := temporary(t, "headgate.yaml", `
auth:
  tokens:
    - {id: web-1, secret: "file:`+sender+`", streams: [web], actions: [send]}
    - {id: ops, secret: "file:`+ops+`", streams: ["*"], actions: [admin]}
`)
	p := startGateway(t, t.TempDir(), "--config", config)
	lines := temporary(t, "events", "{\"a\":1}\n{\"a\":2}\n")

	if status, answer := p.post("web", "{}"); status != http.StatusUnauthorized || !strings.Contains(answer, "unauthorized") {
		t.Errorf("%d %s", status, answer)
	}
	_, stderr := p.headgate(1, "send", "--stream", "web", lines)
	if !strings.Contains(stderr, "give --token or HEADGATE_TOKEN") {
		t.Errorf("send without a token: %s", stderr)
	}
	_, stderr = p.headgate(1, "send", "--stream", "app", "--token", "file:"+sender, lines)
	if !strings.Contains(stderr, "forbidden") {
		t.Errorf("send to another stream: %s", stderr)
	}
	out, _ := p.headgate(0, "send", "--stream", "web", "--token", "file:"+sender, lines)
	if !strings.Contains(out, `"accepted":2`) {
		t.Errorf("send: %s", out)
	}
	p.headgate(1, "stream", "list", "--token", "file:"+sender)
	t.Setenv(tokenVariable, "file:"+ops)
	if rows := p.tail("web"); len(rows) != 2 {
		t.Errorf("tail: %v", rows)
	}
	if out, _ := p.headgate(0, "stream", "list"); !strings.Contains(out, "web") || strings.Contains(out, "app") {
		t.Errorf("stream list: %s", out)
	}
	if err := os.WriteFile(sender, []byte("0123456789abcdef-again\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p.until("the new secret is in force", func() bool {
		_, status := p.try("web", "0123456789abcdef-again")
		return status == http.StatusOK
	})
	if _, status := p.try("web", "0123456789abcdef-sender"); status != http.StatusUnauthorized {
		t.Errorf("the old secret is answered %d", status)
	}
	if log := p.log.String(); strings.Contains(log, "0123456789abcdef") {
		t.Error("the log has a secret")
	}
	if code := p.terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// try posts an event with a token.
func (p *process) try(stream, token string) (answer string, status int) {
	p.t.Helper()
	req, err := http.NewRequest("POST", p.http+"/v1/streams/"+stream+"/events", strings.NewReader("{}"))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	doc, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(doc), resp.StatusCode
}

func TestCheckRefusesWeakTokens(t *testing.T) {
	b, err := product()
	if err != nil {
		t.Fatal(err)
	}
	config := temporary(t, "headgate.yaml", "auth: {tokens: [{id: a, secret: hunter2, streams: ['*'], actions: [send]}]}\n")
	out, err := exec.Command(b.headgate, "check", "--config", config).CombinedOutput()
	failed, ok := err.(*exec.ExitError)
	if !ok || failed.ExitCode() != 2 || !strings.Contains(string(out), "auth.tokens.0.secret: ") || strings.Contains(string(out), "hunter2") {
		t.Errorf("%v: %s", err, out)
	}
}
