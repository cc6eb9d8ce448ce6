// Package wholefile replaces files so that a reader, also one after a crash, finds the old content or the new one.
package wholefile

import (
	"errors"
	"os"
	"path/filepath"
)

// Write replaces the file at path: written beside it, synced, renamed, and the folder synced. Only the owner may read it.
func Write(path string, content []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // after the rename there is nothing to remove
	_, err = tmp.Write(content)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	return SyncFolder(filepath.Dir(path))
}

// SyncFolder makes what was made, renamed or removed in a folder last.
func SyncFolder(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}
