// Package memdisk is a folder in memory that knows what a crash would leave of it, for tests.
package memdisk

import (
	"errors"
	"io"
	"io/fs"
	"strings"
	"sync"

	"github.com/headgate-io/headgate/internal/logfolder"
)

// Memory is the folder of a log, in memory, that knows what would survive a power cut: of each file what was synced, and the writes since.
type Memory struct {
	mu    sync.Mutex
	files map[string]*file
	ops   int
	fail  func(op int) error
}

// file is a file of the folder.
type file struct {
	m             *Memory
	durable, seen []byte
	writes        []write
}

type write struct {
	off  int64
	data []byte
}

// ErrDisk is what a disk says that fails.
var ErrDisk = errors.New("input/output error")

// New returns an empty folder.
func New() *Memory { return &Memory{files: map[string]*file{}} }

// Fail has f asked before each operation that changes something, with its number; nil: none fails. Before is what the folder
// looks like then: f may call Kill and PowerCut, and nothing else of the folder.
func (m *Memory) Fail(f func(op int) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = f
}

// Still calls f while nobody else uses the folder: f may call Kill and PowerCut.
func (m *Memory) Still(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

func (m *Memory) op() error {
	m.ops++
	if m.fail == nil {
		return nil
	}
	return m.fail(m.ops)
}

// List returns the files, without those in a folder quarantine.
func (m *Memory) List() (all []logfolder.Info, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, f := range m.files {
		if !strings.Contains(name, logfolder.Quarantine+"/") {
			all = append(all, logfolder.Info{Name: name, Size: int64(len(f.seen))})
		}
	}
	return all, nil
}

// Open opens a file; with create there must be none.
func (m *Memory) Open(name string, create bool) (logfolder.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, ok := m.files[name]
	switch {
	case !create && !ok:
		return nil, fs.ErrNotExist
	case !create:
		return f, nil
	case ok:
		return nil, fs.ErrExist
	}
	if err := m.op(); err != nil {
		return nil, err
	}
	f = &file{m: m}
	m.files[name] = f
	return f, nil
}

// Remove removes a file for good.
func (m *Memory) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.op(); err != nil {
		return err
	}
	delete(m.files, name)
	return nil
}

// ReadAt reads what was written.
func (f *file) ReadAt(p []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if off >= int64(len(f.seen)) {
		return 0, io.EOF
	}
	n := copy(p, f.seen[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt writes; half of it when a failure strikes.
func (f *file) WriteAt(p []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	err := f.m.op()
	if err != nil {
		p = p[:len(p)/2]
	}
	f.writes = append(f.writes, write{off, append([]byte(nil), p...)})
	f.seen = overwrite(f.seen, p, off)
	return len(p), err
}

func overwrite(to, p []byte, off int64) []byte {
	if grow := int(off) + len(p) - len(to); grow > 0 {
		to = append(to, make([]byte, grow)...)
	}
	copy(to[off:], p)
	return to
}

// Sync that fails drops the writes from what will ever be written, as Linux does, while readers still see them.
func (f *file) Sync() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.m.op(); err != nil {
		f.writes = nil
		return err
	}
	for _, w := range f.writes {
		f.durable = overwrite(f.durable, w.data, w.off)
	}
	f.writes = nil
	return nil
}

// Close does nothing.
func (f *file) Close() error { return nil }

// PowerCut returns the folder as a power cut may leave it: of what was not synced each sector is there, or missing, or
// zero where the file has grown over it, as choose(3) says.
func (m *Memory) PowerCut(choose func(n int) int) *Memory {
	const sector = 512
	return m.like(func(f *file) []byte {
		content := append([]byte(nil), f.durable...)
		for _, w := range f.writes {
			for at := 0; at < len(w.data); {
				n := min(sector-int(w.off+int64(at))%sector, len(w.data)-at)
				switch end := w.off + int64(at) + int64(n); choose(3) {
				case 0:
					content = overwrite(content, w.data[at:at+n], w.off+int64(at))
				case 1:
					content = overwrite(content, nil, end)
				}
				at += n
			}
		}
		return content
	})
}

// Kill returns the folder as the end of the process leaves it.
func (m *Memory) Kill() *Memory { return m.like(func(f *file) []byte { return f.seen }) }

// like is called with m.mu held, or when nobody else uses m.
func (m *Memory) like(content func(*file) []byte) *Memory {
	after := New()
	for name, f := range m.files {
		after.Put(name, content(f))
	}
	return after
}

// Put makes a file, or replaces it.
func (m *Memory) Put(name string, content []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files[name] = &file{m: m, durable: append([]byte(nil), content...), seen: append([]byte(nil), content...)}
}

// Names returns the files whose names contain what.
func (m *Memory) Names(what string) (all []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range m.files {
		if strings.Contains(name, what) {
			all = append(all, name)
		}
	}
	return all
}

// Content returns what is in a file.
func (m *Memory) Content(name string) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]byte(nil), m.files[name].seen...)
}
