package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/headgate-io/headgate/internal/wholefile"
)

const (
	developmentLife = 365 * 24 * time.Hour
	developmentRest = 30 * 24 * time.Hour // that one must have left to be used again
)

// Development returns a self-signed certificate for this machine alone, kept in a folder. It is made when there is none
// that is good for a while.
func Development(folder string, now time.Time) (Pair, error) {
	p := Pair{Cert: filepath.Join(folder, "development.crt"), Key: filepath.Join(folder, "development.key")}
	if found, err := p.read(); err == nil {
		if cert, err := p.parse(found); err == nil && cert.Leaf.NotAfter.After(now.Add(developmentRest)) {
			return p, nil
		}
	}
	if err := p.make(now); err != nil {
		return p, fmt.Errorf("make a development certificate: %w", err)
	}
	return p, nil
}

func (p Pair) make(now time.Time) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return err
	}
	names := []string{"localhost"}
	if host, err := os.Hostname(); err == nil {
		names = append(names, host)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "Headgate development certificate"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(developmentLife),
		DNSNames: names, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := wholefile.Write(p.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})); err != nil {
		return err
	}
	return wholefile.Write(p.Cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}))
}
