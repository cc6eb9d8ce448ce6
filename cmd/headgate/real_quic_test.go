package main

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// quicURL is the URL of the UDP listener.
func (p *process) quicURL() string {
	p.t.Helper()
	var r struct{ QUIC string }
	doc, err := os.ReadFile(filepath.Join(p.data, "run.json"))
	if err == nil {
		err = json.Unmarshal(doc, &r)
	}
	if err != nil || r.QUIC == "" {
		p.t.Fatalf("run.json: %v %s", err, doc)
	}
	return "https://" + r.QUIC
}

// onQUIC has a gateway listen on a free UDP port.
var onQUIC = []string{"--set", "quic.listen=127.0.0.1:0"}

func TestSendOverHTTP3(t *testing.T) {
	p := startGateway(t, t.TempDir(), onQUIC...)
	file := filepath.Join(t.TempDir(), "events.ndjson")
	if err := os.WriteFile(file, []byte("{\"n\":1}\n{\n{\"n\":2}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs := p.headgate(1, "send", "--proto", "h3", "--quic-url", p.quicURL(), "--stream", "web", file)
	if !strings.Contains(out, `"sent":3,"accepted":2,"filtered":0,"rejected":1`) || !strings.Contains(errs, "events.ndjson:2: malformed_json") {
		t.Errorf("%s%s", out, errs)
	}
	if rows := p.tail("web"); len(rows) != 2 {
		t.Errorf("stored %+v", rows)
	}
	if code := p.terminate(); code != 0 {
		t.Errorf("exit %d; log:\n%s", code, p.log)
	}
}

// withoutUsualPort starts a gateway that finds its usual UDP port taken: by this test, or by another gateway that has it then.
func withoutUsualPort(t *testing.T) *process {
	t.Helper()
	const attempts = 20 // the other one may stop in between
	for range attempts {
		usual, err := net.ListenPacket("udp", "127.0.0.1:8443")
		p := startGateway(t, t.TempDir())
		if err == nil {
			usual.Close()
		}
		if strings.Contains(p.log.String(), "QUIC is not spoken") {
			return p
		}
		if err == nil {
			t.Fatalf("its port is taken and it does not say so:\n%s", p.log)
		}
		p.kill()
	}
	t.Fatal("others have the port each time, but never when it is needed")
	return nil
}

// An address that is written must be free; the one that is not written need not.
func TestUDPPortInUse(t *testing.T) {
	taken, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	b, err := product()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, bin: b.headgate}
	_, errs := p.headgate(1, "serve", "--data", t.TempDir(), "--set", "http.listen=127.0.0.1:0", "--set", "admin.listen=127.0.0.1:0",
		"--set", "quic.listen="+taken.LocalAddr().String())
	if !strings.Contains(errs, "listen for QUIC") || !strings.Contains(errs, "set quic.listen to another address") {
		t.Errorf("%s", errs)
	}
	q := withoutUsualPort(t)
	if status, _ := q.post("web", "1\n"); status != 200 {
		t.Errorf("HTTP: %d", status)
	}
}
