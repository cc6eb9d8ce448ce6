package gateway

import (
	"crypto/tls"
	"fmt"
	"time"

	"github.com/headgate-io/headgate/internal/certs"
)

// openCertificate makes the keeper of the certificate where one is wanted.
func (g *Gateway) openCertificate() (err error) {
	c := &g.cfg.HTTP.TLS
	if !c.On() && !g.cfg.QUIC.On() {
		return nil
	}
	pair := certs.Pair{Cert: c.Cert, Key: c.Key}
	if c.Cert == "" {
		if pair, err = certs.Development(g.folder.Path, time.Now()); err != nil {
			return err
		}
	}
	if g.certs, err = certs.Open(pair, g.log); err != nil {
		return fmt.Errorf("http.tls: %w", err)
	}
	if c.Cert == "" && (c.On() || g.cfg.QUIC.Listen != "") {
		g.log.Warn("http.tls names no certificate: a self-signed one is used, for development on this machine", "file", pair.Cert, "fingerprint", g.certs.Fingerprint())
	}
	return g.metrics.Register(g.certs.Collector())
}

// secure returns the settings of TLS for the ingest listener on TCP, nil without.
func (g *Gateway) secure() *tls.Config {
	if !g.cfg.HTTP.TLS.On() {
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
