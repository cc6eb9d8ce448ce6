package layers

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestThePageNamesFilesThatAreThere: who walks a batch by docs/ARCHITECTURE.md finds each file that it names.
func TestThePageNamesFilesThatAreThere(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root(t), "docs", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	var there strings.Builder
	err = filepath.WalkDir(root(t), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			there.WriteString(filepath.ToSlash(path) + "\n")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`[a-z0-9_/]+\.go\b`).FindAllString(string(page), -1)
	if len(named) < 20 {
		t.Fatalf("the page names %d files", len(named))
	}
	for _, name := range named {
		if !strings.Contains(there.String(), "/"+name+"\n") {
			t.Errorf("docs/ARCHITECTURE.md names %s, which is not there", name)
		}
	}
}
