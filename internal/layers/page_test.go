package layers

import (
	"go/ast"
	"go/token"
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
	walkGo(t, func(path string, _ *token.FileSet, _ *ast.File) { there.WriteString("/" + path + "\n") })
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
