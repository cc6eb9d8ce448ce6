package datafolder

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/headgate-io/headgate/ingest/quicdoor"
	"github.com/headgate-io/headgate/internal/wholefile"
)

// QUICKeys reads the keys of the data folder, or makes them. Lost ones cost nothing but time: clients of before notice late
// that their connections are gone.
func (f *Folder) QUICKeys() (*quicdoor.Keys, error) {
	path := f.File("quic.key")
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
