package journal

import (
	"errors"
	"io"
	"io/fs"
	"strings"
	"sync"
)

// memory is a folder in memory that knows what would survive a power cut: of each file what was synced, and the writes since.
type memory struct {
	mu    sync.Mutex
	files map[string]*memoryFile
	ops   int          // file operations that change something, so far
	fail  func() error // asked before each of them; nil: none fails
}

type memoryFile struct {
	m             *memory
	durable, seen []byte
	writes        []memoryWrite
}

type memoryWrite struct {
	off  int64
	data []byte
}

var errDisk = errors.New("input/output error")

func newMemory() *memory { return &memory{files: map[string]*memoryFile{}} }

func (m *memory) op() error {
	m.ops++
	if m.fail == nil {
		return nil
	}
	return m.fail()
}

func (m *memory) List() (all []Info, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, f := range m.files {
		if !strings.HasPrefix(name, "quarantine/") {
			all = append(all, Info{Name: name, Size: int64(len(f.seen))})
		}
	}
	return all, nil
}

func (m *memory) Open(name string, create bool) (File, error) {
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
	f = &memoryFile{m: m}
	m.files[name] = f
	return f, nil
}

func (m *memory) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.op(); err != nil {
		return err
	}
	delete(m.files, name)
	return nil
}

func (f *memoryFile) ReadAt(p []byte, off int64) (int, error) {
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

// WriteAt writes half of what a failure strikes.
func (f *memoryFile) WriteAt(p []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	err := f.m.op()
	if err != nil {
		p = p[:len(p)/2]
	}
	f.writes = append(f.writes, memoryWrite{off, append([]byte(nil), p...)})
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
func (f *memoryFile) Sync() error {
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

func (f *memoryFile) Close() error { return nil }

// powerCut returns the folder as a power cut may leave it: of what was not synced each sector is there, or missing, or
// zero where the file has grown over it, as choose says (0 to 2).
func (m *memory) powerCut(choose func(n int) int) *memory {
	const sector = 512
	return m.like(func(f *memoryFile) []byte {
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

// kill returns the folder as the end of the process leaves it.
func (m *memory) kill() *memory { return m.like(func(f *memoryFile) []byte { return f.seen }) }

func (m *memory) like(content func(*memoryFile) []byte) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	after := newMemory()
	for name, f := range m.files {
		c := append([]byte(nil), content(f)...)
		after.files[name] = &memoryFile{m: after, durable: c, seen: append([]byte(nil), c...)}
	}
	return after
}

func (m *memory) names(what string) (all []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range m.files {
		if strings.Contains(name, what) {
			all = append(all, name)
		}
	}
	return all
}
