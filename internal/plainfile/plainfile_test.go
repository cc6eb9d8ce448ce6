//go:build unix

package plainfile

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Only what can be read at once is.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(path("file"), []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path("file"), path("link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		limit int64
		part  string // of the error, empty for none
	}{
		{"file", 7, ""}, {"link", 7, ""}, {"file", 6, "larger than 6 bytes"}, {"none", 7, "no such file"},
		{"pipe", 7, "no regular file"}, {".", 7, "no regular file"},
	} {
		doc, err := Read(path(c.name), c.limit)
		if c.part == "" && (err != nil || string(doc) != "content") || c.part != "" && (err == nil || !strings.Contains(err.Error(), c.part)) {
			t.Errorf("%s: %q %v", c.name, doc, err)
		}
	}
	if _, err := Read("/dev/zero", 7); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("device: %v", err)
	}
}
