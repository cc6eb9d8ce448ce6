package gateway

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/headgate-io/headgate/internal/wholefile"
)

// folder is the data folder of one gateway: locked while it runs, with an identity that is made once.
type folder struct {
	path string
	id   string // 16 hex digits: the {gateway} of subjects and frames
	lock *os.File
}

// LockedError says that another process uses the data folder.
type LockedError struct {
	Path string
	PID  string // of the process that holds it, where known
}

// Error names the process.
func (e *LockedError) Error() string {
	return fmt.Sprintf("data folder %s is in use by process %s; stop it, or give another --data", e.Path, e.PID)
}

// openFolder makes the folder where needed, locks it and reads or makes its identity.
func openFolder(path string) (*folder, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("make data folder: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open data folder: %w", err)
	}
	if err := lockFile(lock); err != nil {
		held, _ := os.ReadFile(lock.Name())
		lock.Close()
		return nil, &LockedError{Path: path, PID: strings.TrimSpace(string(held))}
	}
	f := &folder{path: path, lock: lock}
	if err := errors.Join(f.writePID(), f.identify()); err != nil {
		lock.Close()
		return nil, err
	}
	return f, nil
}

func (f *folder) writePID() error {
	if err := f.lock.Truncate(0); err != nil {
		return fmt.Errorf("write lock: %w", err)
	}
	_, err := f.lock.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	return err
}

func (f *folder) identify() error {
	path := filepath.Join(f.path, "id")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		id := make([]byte, 8)
		if _, err := rand.Read(id); err != nil {
			return fmt.Errorf("make gateway id: %w", err)
		}
		text = []byte(hex.EncodeToString(id) + "\n")
		err = wholefile.Write(path, text)
	}
	if err != nil {
		return fmt.Errorf("gateway id: %w", err)
	}
	f.id = strings.TrimSpace(string(text))
	if raw, err := hex.DecodeString(f.id); err != nil || len(raw) != 8 {
		return fmt.Errorf("%s is damaged: want 16 hex digits, found %q; put back the id the data was written under (it is part of every subject)", path, f.id)
	}
	return nil
}

// running is what DIR/run.json tells other programs while the gateway is ready.
type running struct {
	PID     int    `json:"pid"`
	HTTP    string `json:"http"`
	HTTPS   string `json:"https"`
	Admin   string `json:"admin"`
	QUIC    string `json:"quic"`
	Version string `json:"version"`
}

func (f *folder) announce(r running) error {
	doc, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return wholefile.Write(f.file("run.json"), append(doc, '\n'))
}

func (f *folder) file(name string) string { return filepath.Join(f.path, name) }

// close takes the announcement back and unlocks the folder.
func (f *folder) close() {
	os.Remove(f.file("run.json"))
	f.lock.Close()
}
