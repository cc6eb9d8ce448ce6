package config

import (
	"errors"
	"fmt"
	"time"

	"github.com/headgate-io/headgate/ingest"
	"github.com/headgate-io/headgate/ingest/quicdoor"
	"github.com/headgate-io/headgate/internal/certs"
	"github.com/headgate-io/headgate/internal/settings"
)

// HTTP is the ingest listener for HTTP/1.1.
type HTTP struct {
	Listen                   string            `json:"listen"` // none: only with TLS
	TLS                      TLS               `json:"tls"`
	CORS                     CORS              `json:"cors"`
	ReadTimeout              settings.Duration `json:"read_timeout"` // for a header, and the floor of the body deadline
	IdleTimeout              settings.Duration `json:"idle_timeout"`
	RequestTimeout           settings.Duration `json:"request_timeout"` // from the whole body to the answer
	MaxConnections           int               `json:"max_connections"`
	MaxConnectionsPerAddress int               `json:"max_connections_per_address"`
	MaxRequestsPerConnection int               `json:"max_requests_per_connection"` // 0: no limit
	MaxConnectionAge         settings.Duration `json:"max_connection_age"`
}

// Admin is the admin listener.
type Admin struct {
	Listen string   `json:"listen"`
	Hosts  []string `json:"hosts"` // further Host names it answers to, besides loopback and the address it listens on
}

// problem returns what is wrong with the listener.
func (h *HTTP) problem() error {
	positive := func(name string, d settings.Duration) error {
		return settings.At(name, mustBe(d > 0, "must be more than 0"))
	}
	var listen, secure error
	if h.Listen != ingest.Nowhere {
		listen = settings.At("listen", address(h.Listen))
	}
	if h.TLS.Listen != "" {
		secure = settings.At("tls.listen", address(h.TLS.Listen))
	}
	return errors.Join(listen, secure,
		positive("read_timeout", h.ReadTimeout), positive("idle_timeout", h.IdleTimeout), positive("request_timeout", h.RequestTimeout),
		settings.At("max_connections", mustBe(h.MaxConnections >= 1, "must be at least 1, got %d", h.MaxConnections)),
		settings.At("max_connections_per_address", mustBe(h.MaxConnectionsPerAddress >= 0, "must be 0 for no limit, or more, got %d", h.MaxConnectionsPerAddress)),
		settings.At("max_requests_per_connection", mustBe(h.MaxRequestsPerConnection >= 0, "must be 0 for no limit, or more, got %d", h.MaxRequestsPerConnection)))
}

// QUIC is the ingest listener on UDP, with the certificate of http.tls.
type QUIC struct {
	Listen      string            `json:"listen"` // none: there is none; default 127.0.0.1:8443, when that is free
	IdleTimeout settings.Duration `json:"idle_timeout"`
}

// On reports whether there is the listener.
func (c *QUIC) On() bool { return c.Listen != ingest.Nowhere }

// Address is where to listen.
func (c *QUIC) Address() string {
	if c.Listen == "" {
		return quicdoor.DefaultListen
	}
	return c.Listen
}

func (c *QUIC) problem() error {
	var listen error
	if c.On() {
		listen = settings.At("listen", address(c.Address()))
	}
	return errors.Join(listen, settings.At("idle_timeout", mustBe(c.IdleTimeout >= settings.Duration(time.Second), "must be at least 1s, got %s", time.Duration(c.IdleTimeout))))
}

// TLS is the ingest listener that speaks TLS 1.3, beside the plain one. There is none when nothing is set.
type TLS struct {
	Listen string `json:"listen"` // default 127.0.0.1:8443
	Cert   string `json:"cert"`   // file: the certificate and those that signed it, PEM; without it, one for this machine is made
	Key    string `json:"key"`    // file: its private key, PEM
}

// On reports whether there is the listener.
func (c *TLS) On() bool { return *c != TLS{} }

// problem opens the files as a start would.
func (c *TLS) problem() error {
	if (c.Cert == "") != (c.Key == "") {
		return fmt.Errorf("cert and key belong together; one of them is missing")
	}
	if c.Cert == "" {
		return nil
	}
	_, err := certs.Open(certs.Pair{Cert: c.Cert, Key: c.Key}, nil)
	return err
}

// CORS says which pages of other origins a browser lets send events. Nothing set: none.
type CORS struct {
	Origins []string `json:"origins"` // like https://app.example.com
}

func (c *CORS) problem() error {
	for _, o := range c.Origins {
		if err := ingest.CheckOrigin(o); err != nil {
			return fmt.Errorf("origins: %w", err)
		}
	}
	return nil
}
