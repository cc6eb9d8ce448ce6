package control

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/headgate-io/headgate/internal/wholefile"
)

// Files are a copy of the store in a folder, enough to start without the store: KINDs/NAME.json for documents and
// modules/HEX.wasm for modules.
//
// The store goes first: a document is written there and then here, and removed here and then there. So whatever a crash
// leaves, a document that is here and not there, or there in an older revision, is one that the store has lost.
type Files struct {
	dir string
	log *slog.Logger

	mu    sync.Mutex
	index index
	known map[string]uint64 // by path: the revision written last, or at which the document was removed
}

// saved is the content of a document's file.
type saved struct {
	Revision uint64          `json:"revision"` // in the store, when this was written
	Sum      string          `json:"sum"`      // of revision and value; absent in files of older releases
	Value    json.RawMessage `json:"value,omitempty"`
	Bytes    []byte          `json:"bytes,omitempty"` // instead of Value when that is no JSON
}

func (s *saved) sum() string {
	h := sha256.New()
	fmt.Fprintf(h, "%d\n%s\n%s", s.Revision, s.Value, s.Bytes)
	return hex.EncodeToString(h.Sum(nil))
}

// OpenFiles makes the folder where it is missing.
func OpenFiles(dir string, log *slog.Logger) (*Files, error) {
	f := &Files{dir: dir, log: log, known: map[string]uint64{}}
	for _, kind := range append(kinds(), "module") {
		if err := os.MkdirAll(f.folder(kind), 0o700); err != nil {
			return nil, fmt.Errorf("make state folder: %w", err)
		}
	}
	var err error
	if f.index, err = readIndex(dir); err != nil {
		f.failed("read", indexPath(dir), err)
	}
	return f, nil
}

func (f *Files) folder(kind string) string { return filepath.Join(f.dir, kind+"s") }

func (f *Files) path(kind, name string) string { return filepath.Join(f.folder(kind), name+".json") }

func (f *Files) modulePath(digest string) string {
	return filepath.Join(f.folder("module"), strings.TrimPrefix(digest, "sha256:")+".wasm")
}

// write keeps a document unless a newer revision is kept already. The store has it, so a failure costs a copy only.
func (f *Files) write(kind string, doc Document) {
	f.mu.Lock()
	defer f.mu.Unlock()
	path := f.path(kind, doc.Name)
	if f.known[path] >= doc.Revision {
		return
	}
	f.known[path] = doc.Revision
	s := saved{Revision: doc.Revision}
	var compact bytes.Buffer
	if err := json.Compact(&compact, doc.Value); err == nil {
		s.Value = compact.Bytes()
	} else {
		s.Bytes = doc.Value
	}
	s.Sum = s.sum()
	var content bytes.Buffer
	to := json.NewEncoder(&content)
	to.SetEscapeHTML(false) // the sum is of the value as it stands in the file
	err := to.Encode(s)
	if err == nil {
		err = wholefile.Write(path, content.Bytes())
	}
	f.failed("write", path, err)
	f.mark(kind, doc.Name, true)
}

// remove takes a document away that is about to be deleted at revision; a newer one stays, as that will fail.
func (f *Files) remove(kind, name string, revision uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	path := f.path(kind, name)
	if f.known[path] > revision {
		return
	}
	f.known[path] = revision
	f.mark(kind, name, false)
	f.failed("remove", path, discard(path))
}

func discard(path string) error {
	if err := os.Remove(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	return wholefile.SyncFolder(filepath.Dir(path))
}

func (f *Files) failed(verb, path string, err error) {
	if err != nil {
		f.log.Error("the copy of the control store is not complete", "doing", verb, "file", path, "error", err)
	}
}

func (f *Files) writeModule(digest string, module []byte) {
	path := f.modulePath(digest)
	f.failed("write", path, wholefile.Write(path, module))
}

func (f *Files) removeModule(digest string) {
	path := f.modulePath(digest)
	f.failed("remove", path, discard(path))
}

// module returns a module that is kept, whole.
func (f *Files) module(digest string) ([]byte, error) {
	module, err := os.ReadFile(f.modulePath(digest))
	if err == nil && Digest(module) != digest {
		err = fmt.Errorf("%s is damaged", f.modulePath(digest))
	}
	return module, err
}

// documents returns the documents of a kind, and an error that names those whose file is damaged or gone.
func (f *Files) documents(kind string) (all []Document, damaged error) {
	for _, name := range f.expected(kind) {
		doc, err := f.read(kind, name)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%s is missing", f.path(kind, name))
		}
		if err != nil {
			damaged = errors.Join(damaged, err)
			continue
		}
		all = append(all, doc)
	}
	return all, damaged
}

func (f *Files) read(kind, name string) (Document, error) {
	path := f.path(kind, name)
	content, err := os.ReadFile(path)
	if err != nil {
		return Document{}, err
	}
	var s saved
	if err := json.Unmarshal(content, &s); err != nil || s.Revision == 0 || s.Sum != "" && s.Sum != s.sum() {
		return Document{}, fmt.Errorf("%s is damaged", path)
	}
	doc := Document{Name: name, Value: s.Value, Revision: s.Revision}
	if s.Value == nil {
		doc.Value = s.Bytes
	}
	return doc, nil
}

// names lists what is kept of a kind, without what a crash left half written.
func (f *Files) names(kind, suffix string) (all []string) {
	entries, err := os.ReadDir(f.folder(kind))
	f.failed("list", f.folder(kind), err)
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), suffix); ok {
			all = append(all, name)
		}
	}
	return all
}

// modules lists the digests of the modules that are kept.
func (f *Files) modules() (digests []string) {
	for _, name := range f.names("module", ".wasm") {
		if raw, err := hex.DecodeString(name); err == nil && len(raw) == 32 {
			digests = append(digests, "sha256:"+name)
		}
	}
	return digests
}

// Empty reports that no document is kept.
func (f *Files) Empty() bool {
	for _, kind := range kinds() {
		if len(f.expected(kind)) > 0 {
			return false
		}
	}
	return true
}

// Whole returns an error that names every file that is damaged or gone.
func (f *Files) Whole() (damaged error) {
	for _, kind := range kinds() {
		_, err := f.documents(kind)
		damaged = errors.Join(damaged, err)
	}
	for _, digest := range f.modules() {
		_, err := f.module(digest)
		damaged = errors.Join(damaged, err)
	}
	return damaged
}
