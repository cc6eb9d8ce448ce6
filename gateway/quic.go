package gateway

import (
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/headgate-io/headgate/ingest"
	"github.com/headgate-io/headgate/ingest/quicdoor"
	"github.com/headgate-io/headgate/internal/wholefile"
)

// quic returns the settings of the listener, nil without.
func (g *Gateway) quic() (*ingest.QUICConfig, error) {
	c := &g.cfg.QUIC
	if !c.On() {
		return nil, nil
	}
	keys, err := g.folder.quicKeys()
	if err != nil {
		return nil, err
	}
	return &ingest.QUICConfig{Listen: c.Address(), Optional: c.Listen == "", TLS: g.tlsForQUIC(), Keys: keys, Idle: time.Duration(c.IdleTimeout)}, nil
}

func (g *Gateway) tlsForQUIC() *tls.Config { return g.certs.TLS() }

// quicKeys reads the keys of the data folder, or makes them. Lost ones cost nothing but time: clients of before notice late
// that their connections are gone.
func (f *folder) quicKeys() (*quicdoor.Keys, error) {
	path := f.file("quic.key")
	var k quicdoor.Keys
	all, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("keys of QUIC: %w", err)
	}
	if len(all) != len(k.Reset)+len(k.Token) {
		all = make([]byte, len(k.Reset)+len(k.Token))
		rand.Read(all) // never fails
		if err := wholefile.Write(path, all); err != nil {
			return nil, fmt.Errorf("keep the keys of QUIC: %w", err)
		}
	}
	copy(k.Token[:], all[copy(k.Reset[:], all):])
	return &k, nil
}
