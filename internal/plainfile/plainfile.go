// Package plainfile reads small files that others write, and nothing that could keep the reader waiting.
package plainfile

import (
	"fmt"
	"io"
	"os"
	"syscall"
)

// Read returns the content of a regular file of at most limit bytes, also through symbolic links. A pipe, a device or a
// folder is refused without waiting for somebody at its other end.
func Read(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe is opened at once
	if err != nil {
		return nil, err
	}
	defer f.Close()
	is, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !is.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	doc, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(doc)) > limit {
		err = fmt.Errorf("%s is larger than %d bytes", path, limit)
	}
	return doc, err
}
