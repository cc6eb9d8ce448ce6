package plugins

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/headgate-io/headgate/plugins/meter"
)

// cacheFolder is where one module's compiled form is kept, with a sum next to it of its files and of what they were
// made from: the compiler executes what it finds, and checks only part of it.
type cacheFolder struct {
	path string // empty for none
	key  string // of what is compiled
}

// cacheOf returns the folder of a module, made for this user alone, and empty unless it holds the undamaged
// compiled form of metered.
func (h *Host) cacheOf(digest string, metered []byte) (cacheFolder, error) {
	root := h.cfg.CacheDir
	if root == "" {
		return cacheFolder{}, nil
	}
	f := h.folderOf(digest)
	f.key = fmt.Sprintf("meter %d, %s", meter.Version, Digest(metered))
	if err := os.MkdirAll(f.path, 0o700); err != nil {
		return cacheFolder{}, err
	}
	if err := os.Chmod(root, 0o700); err != nil {
		return cacheFolder{}, err
	}
	if want, err := os.ReadFile(f.sumFile()); err != nil || string(want) != f.sum() {
		return f, f.clear()
	}
	return f, nil
}

func (h *Host) folderOf(digest string) cacheFolder {
	return cacheFolder{path: filepath.Join(h.cfg.CacheDir, strings.TrimPrefix(digest, "sha256:"))}
}

// Forget removes the compiled form of a module that is not kept any more. One that is in use is not disturbed: it has been
// read.
func (h *Host) Forget(digest string) error {
	if h.cfg.CacheDir == "" {
		return nil
	}
	done, err := h.turns.take(context.Background(), digest) // nobody fills the folder meanwhile
	if err != nil {
		return err
	}
	defer done()
	if err := h.folderOf(digest).clear(); err != nil {
		return fmt.Errorf("remove compiled plugin %s: %w", shortDigest(digest), err)
	}
	return nil
}

// Kept returns the digests of the modules whose compiled form is kept.
func (h *Host) Kept() (digests []string) {
	folders, _ := filepath.Glob(filepath.Join(h.cfg.CacheDir, strings.Repeat("[0-9a-f]", 2*sha256.Size)))
	for _, f := range folders {
		digests = append(digests, "sha256:"+filepath.Base(f))
	}
	return digests
}

func (f cacheFolder) sumFile() string { return f.path + ".sum" }

// clear removes what is kept.
func (f cacheFolder) clear() error {
	if f.path == "" {
		return nil
	}
	os.Remove(f.sumFile())
	return os.RemoveAll(f.path)
}

// seal keeps the sum of the files as they are now.
func (f cacheFolder) seal() error { return os.WriteFile(f.sumFile(), []byte(f.sum()), 0o600) }

// sum is over the key and the names and contents of all files; one that can't be read makes it differ.
func (f cacheFolder) sum() string {
	h := sha256.New()
	fmt.Fprintln(h, f.key)
	files, _ := filepath.Glob(filepath.Join(f.path, "*", "*"))
	for _, name := range files {
		p, err := os.ReadFile(name)
		fmt.Fprintf(h, "%s %d %v\n", filepath.Base(name), len(p), err)
		h.Write(p)
	}
	return fmt.Sprintf("%x\n", h.Sum(nil))
}
