package gateway

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/headgate-io/headgate/internal/wholefile"
)

// spoolMark is a file that says that a stream has had a spool, outside of its folder: without it nobody could tell a spool
// that was removed from one that never was.
func (f *folder) spoolMark(stream string) string {
	return f.file(filepath.Join("state", "spools", stream))
}

// spoolGone tells whether a stream has had a spool, and its folder is not there.
func (f *folder) spoolGone(stream string) bool {
	_, errMark := os.Stat(f.spoolMark(stream))
	_, errFolder := os.Stat(f.spoolFolder(stream))
	return errMark == nil && errors.Is(errFolder, fs.ErrNotExist)
}

// markSpool makes the mark where it is missing.
func (f *folder) markSpool(stream string) error {
	path := f.spoolMark(stream)
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return wholefile.Write(path, nil)
}
