package control

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/headgate-io/headgate/internal/wholefile"
)

// index says which documents there are, so that a file of the copy that is gone is missed: without it a stream would start
// with fewer plugins than it had. It is written after a document's file, and before that is removed.
type index map[string]bool // KIND/NAME

func indexPath(dir string) string { return filepath.Join(dir, "index.json") }

// readIndex returns an empty one where none can be read: the copy is then taken for what it has.
func readIndex(dir string) (index, error) {
	all := index{}
	doc, err := os.ReadFile(indexPath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	var names []string
	if err == nil {
		err = json.Unmarshal(doc, &names)
	}
	for _, n := range names {
		all[n] = true
	}
	return all, err
}

// mark notes that the document is there, or not. The caller holds f.mu.
func (f *Files) mark(kind, name string, there bool) {
	entry := kind + "/" + name
	if f.index[entry] == there {
		return
	}
	if there {
		f.index[entry] = true
	} else {
		delete(f.index, entry)
	}
	doc, err := json.Marshal(slices.Sorted(maps.Keys(f.index)))
	if err == nil {
		err = wholefile.Write(indexPath(f.dir), append(doc, '\n'))
	}
	f.failed("write", indexPath(f.dir), err)
}

// expected lists the names of a kind's documents that are kept, or should be.
func (f *Files) expected(kind string) []string {
	all := f.names(kind, ".json")
	for entry := range f.index {
		if name, ok := strings.CutPrefix(entry, kind+"/"); ok && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}
