package spool

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"strings"
	"sync"
)

// memory is a folder in memory that knows what would survive a power cut.
type memory struct {
	mu    sync.Mutex
	files map[string]*memoryFile

	ops    int             // file operations so far
	fail   func() error    // asked before each operation that changes something; nil: none fails
	lies   bool            // Sync says yes and does nothing
	pieces func(n int) int // how much of a write of n bytes is done when fail strikes; nil: nothing
}

// memoryFile has what was synced and the writes since.
type memoryFile struct {
	m       *memory
	durable []byte
	writes  []memoryWrite
	seen    []byte // what readers see
}

type memoryWrite struct {
	off  int64
	data []byte
}

var errDisk = errors.New("input/output error")

func newMemory() *memory { return &memory{files: map[string]*memoryFile{}} }

// op counts a changing operation and may refuse it.
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
		if !strings.HasPrefix(name, quarantine) {
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

func (f *memoryFile) WriteAt(p []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.m.op(); err != nil {
		n := 0
		if f.m.pieces != nil {
			n = f.m.pieces(len(p))
			f.write(p[:n], off)
		}
		return n, err
	}
	f.write(p, off)
	return len(p), nil
}

func (f *memoryFile) write(p []byte, off int64) {
	f.writes = append(f.writes, memoryWrite{off, append([]byte(nil), p...)})
	f.seen = overwrite(f.seen, p, off)
}

func overwrite(to, p []byte, off int64) []byte {
	if grow := int(off) + len(p) - len(to); grow > 0 {
		to = append(to, make([]byte, grow)...)
	}
	copy(to[off:], p)
	return to
}

// Sync makes the writes durable; one that fails drops them from what will ever be written, as Linux does, while readers
// still see them.
func (f *memoryFile) Sync() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.m.op(); err != nil {
		f.writes = nil
		return err
	}
	if f.m.lies {
		return nil
	}
	f.durable, f.writes = append([]byte(nil), f.seen...), nil
	return nil
}

func (f *memoryFile) Close() error { return nil }

// crash returns the folder as a power cut may leave it: of what was written and not synced each sector is there, or not,
// or zero where the file has grown over it, as choose says (0 to 2).
func (m *memory) crash(choose func(n int) int) *memory {
	const sector = 512
	m.mu.Lock()
	defer m.mu.Unlock()
	after := newMemory()
	for name, f := range m.files {
		content := append([]byte(nil), f.durable...)
		for _, w := range f.writes {
			for at := 0; at < len(w.data); {
				n := min(sector-int(w.off+int64(at))%sector, len(w.data)-at)
				piece := w.data[at : at+n]
				switch choose(3) {
				case 0:
					content = overwrite(content, piece, w.off+int64(at))
				case 1:
					content = overwrite(content, make([]byte, 0), w.off+int64(at)+int64(n)) // grown, and a hole
				}
				at += n
			}
		}
		after.files[name] = &memoryFile{m: after, durable: content, seen: append([]byte(nil), content...)}
	}
	return after
}

// copy returns the folder as it looks.
func (m *memory) copy() *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	after := newMemory()
	for name, f := range m.files {
		content := append([]byte(nil), f.seen...)
		after.files[name] = &memoryFile{m: after, durable: content, seen: append([]byte(nil), content...)}
	}
	return after
}

// put replaces a file.
func (m *memory) put(name string, content []byte) {
	m.files[name] = &memoryFile{m: m, durable: content, seen: append([]byte(nil), content...)}
}

func (m *memory) names(prefix string) (all []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range maps.Keys(m.files) {
		if strings.HasPrefix(name, prefix) {
			all = append(all, name)
		}
	}
	return all
}
