package spool

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/headgate-io/headgate/internal/wholefile"
)

// Files is the folder of a spool. Names have no folder but for "quarantine/". It may be used concurrently.
type Files interface {
	// List returns the files with their sizes, in any order, without those in quarantine.
	List() ([]Info, error)
	// Open opens a file for reading and writing. With create there must be none; it is empty then, and would still be
	// there after a power cut. A folder that was removed is made again.
	Open(name string, create bool) (File, error)
	// Remove returns when the file is gone and will not come back after a power cut; one that is not there is no error.
	Remove(name string) error
}

// Info is a name and a size.
type Info struct {
	Name string
	Size int64
}

// File is a file of the folder. What is written survives a power cut when Sync has returned nil; after an error of Sync
// nobody knows what does, and asking again says nothing.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Sync() error
}

// Folder returns the files in a folder of the operating system, which it makes.
func Folder(path string) (Files, error) {
	if err := os.MkdirAll(filepath.Join(path, quarantine), 0o700); err != nil {
		return nil, err
	}
	if err := wholefile.SyncFolder(path); err != nil {
		return nil, err
	}
	return folder(path), wholefile.SyncFolder(filepath.Dir(path))
}

const quarantine = "quarantine"

type folder string

func (d folder) List() (all []Info, err error) {
	entries, err := os.ReadDir(string(d))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, Info{Name: e.Name(), Size: info.Size()})
	}
	return all, err
}

func (d folder) Open(name string, create bool) (File, error) {
	path := filepath.Join(string(d), name)
	if !create {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if errors.Is(err, fs.ErrPermission) {
			f, err = os.Open(path)
		}
		if err != nil {
			return nil, err
		}
		return file{f}, nil
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrNotExist) { // the folder was removed while the spool is in use
		if _, err = Folder(string(d)); err == nil {
			f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		}
	}
	if err != nil {
		return nil, err
	}
	if err := wholefile.SyncFolder(filepath.Dir(path)); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(path))
	}
	return file{f}, nil
}

// file is a file of the operating system that is still to be found when Sync returns.
type file struct{ *os.File }

// Sync fails also when the file was removed or replaced: it takes whatever is written, for nobody to find.
func (f file) Sync() error {
	if err := f.File.Sync(); err != nil {
		return err
	}
	open, err := f.Stat()
	if err != nil {
		return err
	}
	found, err := os.Stat(f.Name())
	if err == nil && os.SameFile(open, found) {
		return nil
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s was removed or replaced while it was written", f.Name())
	}
	return err
}

func (d folder) Remove(name string) error {
	path := filepath.Join(string(d), name)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return wholefile.SyncFolder(filepath.Dir(path))
}
