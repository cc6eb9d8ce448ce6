package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// made returns the pair of a new development certificate in a folder of its own.
func made(t *testing.T, now time.Time) Pair {
	t.Helper()
	p, err := Development(t.TempDir(), now)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// become copies one file over another.
func become(t *testing.T, to, from string) {
	t.Helper()
	doc, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, doc, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// serial is that of the certificate a handshake gets.
func (k *Keeper) serial(t *testing.T) string {
	t.Helper()
	near, far := net.Pipe()
	done := make(chan error, 1)
	go func() { done <- tls.Server(far, k.TLS("http/1.1")).Handshake() }()
	roots := x509.NewCertPool()
	roots.AddCert(k.now.Load().Leaf)
	c := tls.Client(near, &tls.Config{ServerName: "localhost", RootCAs: roots, NextProtos: []string{"http/1.1"}})
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	state := c.ConnectionState()
	if state.Version != tls.VersionTLS13 || state.NegotiatedProtocol != "http/1.1" {
		t.Errorf("version %x, protocol %q", state.Version, state.NegotiatedProtocol)
	}
	return state.PeerCertificates[0].SerialNumber.String()
}

// I01, I05b: a new pair is taken over; what is none leaves the old one in force and is said once, until it changes.
func TestI01I05NewFiles(t *testing.T) {
	pair, next := made(t, time.Now()), made(t, time.Now())
	var log bytes.Buffer
	k, err := Open(pair, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	old := k.serial(t)
	said := func(text string) int { return strings.Count(log.String(), text) }
	look := func(serial string, taken, kept int) {
		t.Helper()
		k.Look()
		k.Look()
		if got := k.serial(t); got != serial || said("took over") != taken || said("stays in force") != kept {
			t.Errorf("serial %s, want %s; log:\n%s", got, serial, &log)
		}
	}
	look(old, 0, 0)
	become(t, pair.Cert, next.Cert) // without its key
	look(old, 0, 1)
	if !strings.Contains(log.String(), pair.Cert) || !strings.Contains(log.String(), "private key does not match") {
		t.Errorf("log:\n%s", &log)
	}
	if err := os.Remove(pair.Key); err != nil {
		t.Fatal(err)
	}
	look(old, 0, 2)
	become(t, pair.Key, next.Key)
	fresh := k.now.Load().Leaf.SerialNumber.String()
	k.Look()
	if now := k.serial(t); now == fresh || now == old {
		t.Error("the new pair is not in force")
	}
	look(k.serial(t), 1, 2)
	if err := os.Rename(pair.Key, pair.Key+".away"); err != nil {
		t.Fatal(err)
	}
	look(k.serial(t), 1, 3)
	if err := os.Rename(pair.Key+".away", pair.Key); err != nil { // as it was: fine again
		t.Fatal(err)
	}
	look(k.serial(t), 2, 3)
	if err := os.Remove(pair.Key); err != nil { // and the same trouble is news again
		t.Fatal(err)
	}
	look(k.serial(t), 2, 4)
}

// I01: a pipe in the place of a file keeps nobody waiting, and what comes after it is taken over.
func TestI01PipeKeepsNobodyWaiting(t *testing.T) {
	pair, next := made(t, time.Now()), made(t, time.Now())
	k, err := Open(pair, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	old := k.serial(t)
	if err := os.Remove(pair.Cert); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pair.Cert, 0o600); err != nil {
		t.Fatal(err)
	}
	if k.Look(); k.serial(t) != old {
		t.Error("the old certificate is not in force")
	}
	if err := os.Remove(pair.Cert); err != nil {
		t.Fatal(err)
	}
	become(t, pair.Key, next.Key)
	become(t, pair.Cert, next.Cert)
	if k.Look(); k.serial(t) == old {
		t.Error("the new certificate is not in force")
	}
}

// I01: within 10 s, without anybody asking.
func TestI01RunLooks(t *testing.T) {
	pair, next := made(t, time.Now()), made(t, time.Now())
	synctest.Test(t, func(t *testing.T) {
		k, err := Open(pair, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go k.Run(ctx)
		old := k.now.Load()
		become(t, pair.Key, next.Key)
		become(t, pair.Cert, next.Cert)
		<-time.After(10 * time.Second)
		synctest.Wait()
		if k.now.Load() == old {
			t.Error("the new pair is not in force after 10 s")
		}
	})
}

// I05a, and what else can be wrong with files: the error names them.
func TestI05OpenNamesTheFile(t *testing.T) {
	pair, other := made(t, time.Now()), made(t, time.Now())
	big := filepath.Join(t.TempDir(), "big")
	if err := os.WriteFile(big, make([]byte, fileBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		pair Pair
		want []string
	}{
		"no certificate":    {Pair{pair.Cert + "x", pair.Key}, []string{"read certificate", pair.Cert + "x"}},
		"no key":            {Pair{pair.Cert, pair.Key + "x"}, []string{"read key", pair.Key + "x"}},
		"key is a folder":   {Pair{pair.Cert, filepath.Dir(pair.Key)}, []string{"read key", filepath.Dir(pair.Key)}},
		"key of another":    {Pair{pair.Cert, other.Key}, []string{pair.Cert, other.Key, "does not match"}},
		"the other way":     {Pair{pair.Key, pair.Cert}, []string{pair.Key}},
		"key is very large": {Pair{pair.Cert, big}, []string{big, "larger than"}},
	} {
		_, err := Open(c.pair, slog.New(slog.DiscardHandler))
		if err == nil {
			t.Errorf("%s: taken", name)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: no %q in %q", name, part, err)
			}
		}
	}
}

func TestI05KeyWithoutPermission(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("permission: root may read every file")
	}
	pair := made(t, time.Now())
	if err := os.Chmod(pair.Key, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(pair, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), pair.Key) {
		t.Errorf("got %v", err)
	}
}

func TestI03NotAfterIsAMetric(t *testing.T) {
	end := time.Now().Add(developmentLife)
	k, err := Open(made(t, time.Now()), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if got := testutil.ToFloat64(k.Collector()); got < float64(end.Unix()-60) || got > float64(end.Unix()+60) {
		t.Errorf("%f, want about %d", got, end.Unix())
	}
}

func TestDevelopmentIsKept(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	serial := func(at time.Time) string {
		p, err := Development(dir, at)
		if err != nil {
			t.Fatal(err)
		}
		k, err := Open(p, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return k.now.Load().Leaf.SerialNumber.String()
	}
	first := serial(now)
	if serial(now.Add(time.Hour)) != first {
		t.Error("it is made anew each time")
	}
	if serial(now.Add(developmentLife-developmentRest+time.Hour)) == first {
		t.Error("one at its end is used")
	}
	if st, err := os.Stat(filepath.Join(dir, "development.key")); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", st.Mode(), err)
	}
}
