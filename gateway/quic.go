package gateway

import (
	"crypto/tls"
	"time"

	"github.com/headgate-io/headgate/ingest"
)

// quic returns the settings of the listener, nil without.
func (g *Gateway) quic() (*ingest.QUICConfig, error) {
	c := &g.cfg.QUIC
	if !c.On() {
		return nil, nil
	}
	keys, err := g.folder.QUICKeys()
	if err != nil {
		return nil, err
	}
	return &ingest.QUICConfig{Listen: c.Address(), Optional: c.Listen == "", TLS: g.tlsForQUIC(), Keys: keys, Idle: time.Duration(c.IdleTimeout)}, nil
}

func (g *Gateway) tlsForQUIC() *tls.Config { return g.certs.TLS() }
