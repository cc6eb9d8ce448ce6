package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
)

// trust returns the settings of TLS for a gateway on host: verified by the certificates of the file ca, or by those of the
// system. Without ca, a self-signed certificate on this machine is taken for that of development, with a word on stderr.
func trust(host, ca string, stderr io.Writer) (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS13, ServerName: host}
	if ca != "" {
		doc, err := os.ReadFile(ca)
		if err != nil {
			return nil, usageError(fmt.Errorf("--ca: %w", err))
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(doc) {
			return nil, usagef("--ca %s: no certificate in PEM is in it", ca)
		}
		return cfg, nil
	}
	if !loopback(host) {
		return cfg, nil
	}
	say := sync.OnceFunc(func() {
		fmt.Fprintf(stderr, "the certificate of %s is self-signed: taken for a development certificate, since it is this machine\n", host)
	})
	cfg.InsecureSkipVerify = true // VerifyConnection does it
	cfg.VerifyConnection = func(s tls.ConnectionState) error {
		err := verify(s.PeerCertificates, host)
		if leaf := s.PeerCertificates[0]; err != nil && selfSigned(leaf) {
			say()
			return nil
		}
		return err
	}
	return cfg, nil
}

// verify is what crypto/tls does by itself.
func verify(chain []*x509.Certificate, host string) error {
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{DNSName: host, Intermediates: between})
	return err
}

func selfSigned(c *x509.Certificate) bool {
	return bytes.Equal(c.RawIssuer, c.RawSubject) && c.CheckSignature(c.SignatureAlgorithm, c.RawTBSCertificate, c.Signature) == nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
