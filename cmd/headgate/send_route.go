package main

import (
	"net"
	"net/http"
	"net/url"
	"os"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/spf13/cobra"
)

// route is how send reaches the gateway.
type route struct {
	proto string
	tcp   *address
	quic  string // URL of the UDP listener
}

// routeFlags adds --proto and --quic-url beside those of ingestFlag.
func routeFlags(cmd *cobra.Command) *route {
	r := &route{tcp: ingestFlag(cmd)}
	cmd.Flags().StringVar(&r.proto, "proto", "http", "http (HTTP/1.1 at --url), h3 (HTTP/3 at --quic-url), or quic (a session, there)")
	cmd.Flags().StringVar(&r.quic, "quic-url", os.Getenv("HEADGATE_QUIC_URL"), "the gateway's UDP listener; also HEADGATE_QUIC_URL (default: where --url is, when that is https; else its host at port 8443)")
	return r
}

// dial checks the address; nothing is connected yet.
func (r *route) dial() (*remote, error) {
	switch r.proto {
	case "http":
		return r.tcp.dial()
	case "h3", "quic":
		return r.udp()
	}
	return nil, usagef("--proto is http, h3 or quic, not %q", r.proto)
}

// quicURL is where the UDP listener is: a gateway with TLS has it at the same port.
func (r *route) quicURL() string {
	if u, err := url.Parse(r.tcp.url); r.quic == "" && err == nil && u.Scheme == "https" {
		return r.tcp.url
	} else if r.quic == "" && err == nil && u.Hostname() != "" {
		return "https://" + net.JoinHostPort(u.Hostname(), "8443")
	}
	return r.quic
}

// udp is the gateway over HTTP/3.
func (r *route) udp() (*remote, error) {
	at := *r.tcp
	at.url, at.flag, at.example = r.quicURL(), "--quic-url", "https://127.0.0.1:8443"
	to, err := at.dial()
	if err != nil {
		return nil, err
	}
	to.tls = to.http.Transport.(*http.Transport).TLSClientConfig
	to.http.Transport = &http3.Transport{TLSClientConfig: to.tls, QUICConfig: &quic.Config{}, DisableCompression: true}
	return to, nil
}
