package natsd

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/headgate-io/headgate/internal/wholefile"
)

// putBack writes deleted blocks again whose content is still to be had; the server has left the folder.
func (s *Server) putBack(deleted map[string]*os.File) {
	for path, f := range deleted {
		size, err := restore(path, f)
		if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) { // the server has gone on in another, or removed the stream
			continue
		}
		if err != nil {
			s.log.Error("a deleted file of the store could not be put back", "file", path, "error", err)
			continue
		}
		s.log.Warn("a deleted file of the store was put back", "file", path, "bytes", size)
	}
}

// restore writes a file that is not there any more; an error leaves none.
func restore(path string, from *os.File) (size int64, err error) {
	defer from.Close()
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	size, err = io.Copy(to, io.NewSectionReader(from, 0, 1<<62))
	if err = errors.Join(err, to.Sync(), to.Close()); err != nil {
		return 0, errors.Join(err, os.Remove(path))
	}
	// The server's index may have been written without it.
	if err := os.Remove(filepath.Join(filepath.Dir(path), "index.db")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return size, err
	}
	return size, wholefile.SyncFolder(filepath.Dir(path))
}
