package natsd

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/headgate-io/headgate/internal/wholefile"
)

// SetAside renames the folder of a store that does not open to another name, and notes in a new one which streams were in it:
// their lanes have lost all they had. undo takes it back.
func SetAside(dir, to string) (undo func() error, err error) {
	streams, err := filepath.Glob(filepath.Join(escaped(dir), "jetstream", "*", "streams", "*"))
	if err != nil {
		return nil, err
	}
	before, err := readReport(dir)
	if err != nil {
		before = nil // it is kept with the rest
	}
	if err := os.Rename(dir, to); err != nil {
		return nil, err
	}
	all := before
	for _, s := range streams {
		all = append(all, Damage{Stream: filepath.Base(s), From: 1, To: 1, Original: filepath.Base(to), Found: time.Now().UTC()})
	}
	err = errors.Join(os.MkdirAll(dir, 0o700), addToReport(dir, all), wholefile.SyncFolder(filepath.Dir(dir)))
	return func() error { return errors.Join(os.RemoveAll(dir), os.Rename(to, dir)) }, err
}

// Empty tells whether there is no store in a folder.
func Empty(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "jetstream"))
	return errors.Is(err, fs.ErrNotExist)
}
