// Package certs keeps the certificate of the listeners that speak TLS and takes over a new one while they are open.
package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/internal/plainfile"
)

// Pair are the files of a certificate, with those that signed it behind it, and of its private key, both PEM.
type Pair struct{ Cert, Key string }

// Keeper has the certificate in force. Its methods may be called concurrently.
type Keeper struct {
	pair Pair
	log  *slog.Logger
	now  atomic.Pointer[tls.Certificate]

	mu    sync.Mutex // guards what follows
	tried content    // what the files held when they were last looked at
	said  string     // why that is not in force; empty: it is
}

// content is what the files of a pair hold.
type content struct{ cert, key []byte }

func (c content) equal(d content) bool {
	return bytes.Equal(c.cert, d.cert) && bytes.Equal(c.key, d.key)
}

// Open reads a pair for the first time. Errors name the files.
func Open(pair Pair, log *slog.Logger) (*Keeper, error) {
	k := &Keeper{pair: pair, log: log}
	var err error
	if k.tried, err = pair.read(); err != nil {
		return nil, err
	}
	cert, err := pair.parse(k.tried)
	if err != nil {
		return nil, err
	}
	k.now.Store(cert)
	return k, nil
}

// fileBytes bounds what is read as a certificate or a key: more is some other file.
const fileBytes = 1 << 20

func (p Pair) read() (c content, err error) {
	if c.cert, err = plainfile.Read(p.Cert, fileBytes); err != nil {
		return c, fmt.Errorf("read certificate: %w", err)
	}
	if c.key, err = plainfile.Read(p.Key, fileBytes); err != nil {
		return c, fmt.Errorf("read key of the certificate: %w", err)
	}
	return c, nil
}

func (p Pair) parse(c content) (*tls.Certificate, error) {
	cert, err := tls.X509KeyPair(c.cert, c.key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", p.Cert, p.Key, err)
	}
	if cert.Leaf == nil {
		if cert.Leaf, err = x509.ParseCertificate(cert.Certificate[0]); err != nil {
			return nil, fmt.Errorf("certificate %s: %w", p.Cert, err)
		}
	}
	return &cert, nil
}

// TLS returns the settings of a listener: TLS 1.3, whatever certificate is in force at the handshake, and the protocols
// that may be agreed on (ALPN).
func (k *Keeper) TLS(protocols ...string) *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS13,
		NextProtos:     protocols,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return k.now.Load(), nil },
	}
}

// NotAfter is the end of the certificate in force.
func (k *Keeper) NotAfter() time.Time { return k.now.Load().Leaf.NotAfter }

// Untimely says that the certificate in force has ended or not begun, so that clients refuse it; empty when neither.
func (k *Keeper) Untimely(now time.Time) string {
	switch leaf := k.now.Load().Leaf; {
	case now.After(leaf.NotAfter):
		return fmt.Sprintf("the certificate %s ended at %s, and clients refuse it; put a new one in its place, which is taken over without a restart", k.pair.Cert, leaf.NotAfter.Format(time.RFC3339))
	case now.Before(leaf.NotBefore):
		return fmt.Sprintf("the certificate %s begins at %s, and clients refuse it until then; is the clock right?", k.pair.Cert, leaf.NotBefore.Format(time.RFC3339))
	}
	return ""
}

// Collector is the metric of the end of the certificate in force.
func (k *Keeper) Collector() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "headgate_tls_certificate_not_after_timestamp_seconds", Help: "When the certificate in force ends, in Unix time.",
	}, func() float64 { return float64(k.NotAfter().Unix()) })
}

// every is how often the files are looked at. New ones must be in force within 10 s; they are small, and reading them,
// unlike watching them, also notices what is replaced behind a symbolic link or on a network file system.
const every = 5 * time.Second

// Run looks at the files until ctx ends. It does not wait then for a look that a file system keeps.
func (k *Keeper) Run(ctx context.Context) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		looked := make(chan struct{})
		go func() { defer close(looked); k.Look() }()
		select {
		case <-looked:
		case <-ctx.Done():
			return
		}
	}
}

// Look takes over what the files hold when it has changed and is a pair; otherwise what is in force stays, and why is
// logged once.
func (k *Keeper) Look() {
	k.mu.Lock()
	defer k.mu.Unlock()
	found, err := k.pair.read()
	if err == nil {
		if k.said == "" && found.equal(k.tried) {
			return
		}
		var cert *tls.Certificate
		if cert, err = k.pair.parse(found); err == nil {
			k.tried, k.said = found, ""
			k.now.Store(cert)
			k.log.Info("took over a certificate", "file", k.pair.Cert, "not_after", cert.Leaf.NotAfter)
			if said := k.Untimely(time.Now()); said != "" {
				k.log.Warn(said)
			}
			return
		}
	}
	if text := err.Error(); text != k.said {
		k.said = text
		k.log.Error("a new certificate is not taken over, the old one stays in force", "error", err, "not_after", k.NotAfter())
	}
}
