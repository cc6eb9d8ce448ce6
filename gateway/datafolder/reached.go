package datafolder

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/headgate-io/headgate/internal/wholefile"
)

// reached is what is kept of an external server that was reached: it may be away at a later start. One that never was is more
// likely a mistake in the URL.
type Reached struct {
	URL        string `json:"url"` // without passwords
	MaxPayload int64  `json:"max_payload"`
}

func (f *Folder) reachedFile(backend string) string {
	return f.File(filepath.Join("backends", backend+".json"))
}

// ReachedBefore returns what is known of a server, its zero value when that was never reached.
func (f *Folder) ReachedBefore(backend, url string) (r Reached) {
	doc, err := os.ReadFile(f.reachedFile(backend))
	if err != nil || json.Unmarshal(doc, &r) != nil || r.URL != url || r.MaxPayload <= 0 {
		return Reached{}
	}
	return r
}

// KeepReached keeps that a server was reached.
func (f *Folder) KeepReached(backend string, r Reached) error {
	if f.ReachedBefore(backend, r.URL) == r {
		return nil
	}
	doc, err := json.Marshal(r)
	if err != nil {
		return err
	}
	path := f.reachedFile(backend)
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), wholefile.Write(path, append(doc, '\n')))
}
