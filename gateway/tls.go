package gateway

import (
	"crypto/tls"
	"fmt"
	"time"

	"github.com/headgate-io/headgate/ingest"
	"github.com/headgate-io/headgate/internal/certs"
)

// TLSConfig is the ingest listener that speaks TLS 1.3, beside the plain one. There is none when nothing is set.
type TLSConfig struct {
	Listen string `json:"listen"` // default 127.0.0.1:8443
	Cert   string `json:"cert"`   // file: the certificate and those that signed it, PEM; without it, one for this machine is made
	Key    string `json:"key"`    // file: its private key, PEM
}

func (c *TLSConfig) on() bool { return *c != TLSConfig{} }

// problem opens the files as a start would.
func (c *TLSConfig) problem() error {
	if (c.Cert == "") != (c.Key == "") {
		return fmt.Errorf("cert and key belong together; one of them is missing")
	}
	if c.Cert == "" {
		return nil
	}
	_, err := certs.Open(certs.Pair{Cert: c.Cert, Key: c.Key}, nil)
	return err
}

// openCertificate makes the keeper of the certificate where one is wanted.
func (g *Gateway) openCertificate() (err error) {
	c := &g.cfg.HTTP.TLS
	if !c.on() && !g.cfg.QUIC.on() {
		return nil
	}
	pair := certs.Pair{Cert: c.Cert, Key: c.Key}
	if c.Cert == "" {
		if pair, err = certs.Development(g.folder.path, time.Now()); err != nil {
			return err
		}
	}
	if g.certs, err = certs.Open(pair, g.log); err != nil {
		return fmt.Errorf("http.tls: %w", err)
	}
	if c.Cert == "" && (c.on() || g.cfg.QUIC.Listen != "") {
		g.log.Warn("http.tls names no certificate: a self-signed one is used, for development on this machine", "file", pair.Cert, "fingerprint", g.certs.Fingerprint())
	}
	return g.metrics.Register(g.certs.Collector())
}

// secure returns the settings of TLS for the ingest listener on TCP, nil without.
func (g *Gateway) secure() *tls.Config {
	if !g.cfg.HTTP.TLS.on() {
		return nil
	}
	return g.certs.TLS("http/1.1")
}

// Reload takes over what has changed outside of the configuration: certificates, the secrets of tokens. It may be called at any time, and is
// what SIGHUP does.
func (g *Gateway) Reload() {
	if !g.accepting.Load() {
		return
	}
	if k := g.certs; k != nil {
		k.Look()
	}
	g.reloadTokens()
}

// CORSConfig says which pages of other origins a browser lets send events. Nothing set: none.
type CORSConfig struct {
	Origins []string `json:"origins"` // like https://app.example.com
}

func (c *CORSConfig) problem() error {
	for _, o := range c.Origins {
		if err := ingest.CheckOrigin(o); err != nil {
			return fmt.Errorf("origins: %w", err)
		}
	}
	return nil
}
