package datafolder

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/headgate-io/headgate/internal/wholefile"
)

// spoolMark is a file that says that a stream has had a spool, outside of its folder: without it nobody could tell a spool
// that was removed from one that never was.
func (f *Folder) spoolMark(stream string) string {
	return f.File(filepath.Join("state", "spools", stream))
}

// SpoolGone tells whether a stream has had a spool, and its folder is not there.
func (f *Folder) SpoolGone(stream string) bool {
	_, errMark := os.Stat(f.spoolMark(stream))
	_, errFolder := os.Stat(f.SpoolFolder(stream))
	return errMark == nil && errors.Is(errFolder, fs.ErrNotExist)
}

// MarkSpool makes the mark where it is missing.
func (f *Folder) MarkSpool(stream string) error {
	path := f.spoolMark(stream)
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return wholefile.Write(path, nil)
}

// SpoolFolder has a folder for each stream.
func (f *Folder) SpoolFolder(stream string) string { return f.File(filepath.Join("spool", stream)) }
