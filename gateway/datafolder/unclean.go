package datafolder

import (
	"os"
	"path/filepath"

	"github.com/headgate-io/headgate/internal/wholefile"
)

// unclean is the path of a file that is there while a gateway runs, and after it unless that has stopped in order.
func (f *Folder) unclean() string { return f.WindowFolder("unclean") }

// Begin notes that a gateway runs, and reports whether the one before did not stop in order.
func (f *Folder) Begin() (unclean bool, err error) {
	path := f.unclean()
	if _, err := os.Stat(path); err == nil {
		return true, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return false, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600) // without a byte in it: a full disk has room for it
	if err != nil {
		return false, err
	}
	if err := file.Close(); err != nil {
		return false, err
	}
	return false, wholefile.SyncFolder(filepath.Dir(path))
}

// End notes a stop in order.
func (f *Folder) End() error { return os.Remove(f.unclean()) }
