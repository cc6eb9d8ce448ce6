package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// authority signs certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // PEM
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, file: filepath.Join(t.TempDir(), "ca.crt")}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.key = newKey(t)
	a.cert = a.sign(template, template, a.key, a.key, a.file)
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a *authority) sign(template, parent *x509.Certificate, key, by *ecdsa.PrivateKey, file string) *x509.Certificate {
	a.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err == nil {
		err = os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600)
	}
	if err != nil {
		a.t.Fatal(err)
	}
	return cert
}

// issue writes a certificate for this machine with a serial number, and its key.
func (a *authority) issue(serial int64, certFile, keyFile string) {
	a.t.Helper()
	key := newKey(a.t)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err == nil {
		err = os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
	}
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "gateway"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	a.sign(template, a.cert, key, a.key, certFile)
}

// client returns a client that trusts a, with connections of its own.
func (a *authority) client() *http.Client {
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	t := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	a.t.Cleanup(t.CloseIdleConnections)
	return &http.Client{Transport: t}
}

// serial posts an event and returns the serial number of the certificate on the connection.
func (p *process) serial(c *http.Client) int64 {
	p.t.Helper()
	resp, err := c.Post(p.https()+"/v1/streams/web/events", "application/json", strings.NewReader("{}"))
	if err != nil {
		p.t.Fatalf("%v; log:\n%s", err, p.log)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 200 {
		p.t.Fatalf("%d %s %v", resp.StatusCode, body, err)
	}
	return resp.TLS.PeerCertificates[0].SerialNumber.Int64()
}

// https is the base URL of the listener with TLS.
func (p *process) https() string {
	p.t.Helper()
	var r struct{ HTTPS string }
	doc, err := os.ReadFile(filepath.Join(p.data, "run.json"))
	if err == nil {
		err = json.Unmarshal(doc, &r)
	}
	if err != nil || r.HTTPS == "" {
		p.t.Fatalf("run.json: %v %s", err, doc)
	}
	return "https://" + r.HTTPS
}

// I01, I05b: SIGHUP takes over new files, and open connections stay; half a pair leaves the old one in force.
func TestI01CertificateIsReplaced(t *testing.T) {
	dir, a := t.TempDir(), newAuthority(t)
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	a.issue(10, cert, key)
	p := startGateway(t, t.TempDir(), "--set", "http.tls.listen=127.0.0.1:0", "--set", "http.tls.cert="+cert, "--set", "http.tls.key="+key)
	open := a.client()
	if n := p.serial(open); n != 10 {
		t.Fatalf("serial %d", n)
	}
	hangup := func() {
		t.Helper()
		if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	a.issue(11, cert, filepath.Join(dir, "other.key"))
	hangup()
	p.until("the mismatch is logged", func() bool { return strings.Contains(p.log.String(), "stays in force") })
	if n := p.serial(a.client()); n != 10 {
		t.Errorf("serial %d with half a pair", n)
	}
	a.issue(12, cert, key)
	hangup()
	p.until("a new handshake gets the new certificate", func() bool { return p.serial(a.client()) == 12 })
	if n := p.serial(open); n != 10 {
		t.Errorf("serial %d: the open connection was closed", n)
	}
	a.issue(13, cert, key) // nobody asks
	p.until("the files are looked at", func() bool { return p.serial(a.client()) == 13 })
	if metric := "headgate_tls_certificate_not_after_timestamp_seconds"; !strings.Contains(p.get("/metrics"), "\n"+metric+" 1.") {
		t.Errorf("no %s", metric)
	}
	p.headgate(0, "send", "--stream", "web", "--url", p.https(), "--ca", a.file, sampleLine(t))
	if _, stderr := p.headgate(1, "send", "--stream", "web", "--timeout", "0s", "--url", p.https(), sampleLine(t)); !strings.Contains(stderr, "unknown authority") {
		t.Errorf("a certificate of an unknown authority is taken: %s", stderr)
	}
	if code := p.terminate(); code != 0 {
		t.Errorf("exit %d", code)
	}
}

func sampleLine(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "one.ndjson")
	if err := os.WriteFile(file, []byte("{\"a\":1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Without a certificate one is made for this machine, kept, and taken by the client with a word; and it is enough alone.
func TestDevelopmentCertificate(t *testing.T) {
	data := t.TempDir()
	p := startGateway(t, data, "--set", "http.listen=none", "--set", "http.tls.listen=127.0.0.1:0")
	_, stderr := p.headgate(0, "send", "--stream", "web", "--url", p.https(), sampleLine(t))
	if n := strings.Count(stderr, "self-signed"); n != 1 {
		t.Errorf("stderr %q", stderr)
	}
	if _, stderr = p.headgate(0, "send", "--stream", "web", "--url", p.https(), "--ca", filepath.Join(data, "development.crt"), sampleLine(t)); stderr != "" {
		t.Errorf("stderr %q", stderr)
	}
	if rows := p.tail("web"); len(rows) != 2 {
		t.Errorf("%d events", len(rows))
	}
	p.headgate(2, "send", "--stream", "web", "--url", p.https(), "--ca", sampleLine(t), sampleLine(t))
}

// I05a: what is wrong with the files is one line that names them, and exit 2, of serve and of check.
func TestI05BadCertificateFiles(t *testing.T) {
	b, err := product()
	if err != nil {
		t.Fatal(err)
	}
	dir, a := t.TempDir(), newAuthority(t)
	cert, key, other := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "other.key")
	a.issue(1, filepath.Join(dir, "other.crt"), other)
	a.issue(2, cert, key)
	for _, c := range []struct{ key, want string }{
		{other, "does not match"}, {dir, "read key"}, {key + "x", "no such file"}, {"", "belong together"},
	} {
		for _, command := range []string{"serve", "check"} {
			args := []string{command, "--set", "http.tls.cert=" + cert, "--set", "http.tls.key=" + c.key}
			if command == "serve" {
				args = append(args, "--data", filepath.Join(dir, "data"))
			}
			cmd := exec.Command(b.headgate, args...)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			cmd.Run()
			out := stderr.String()
			if code := cmd.ProcessState.ExitCode(); code != 2 || !strings.Contains(out, c.want) || !strings.Contains(out, "http.tls") ||
				c.key != "" && !strings.Contains(out, c.key) || strings.Count(out, "\n") != 1 {
				t.Errorf("%s with key %q: exit %d, %s", command, c.key, code, out)
			}
		}
	}
}
