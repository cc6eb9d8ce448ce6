package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The limits of docs/ARCHITECTURE.md: past them a file or function is more than one concept.
const (
	maxFileLines     = 400
	maxFunctionLines = 60
	maxParameters    = 4 // besides a context
)

func TestFilesAndFunctionsStaySmall(t *testing.T) {
	allow := exceptions(t)
	used := map[string]bool{}
	excused := func(what string) bool { used[what] = true; return allow[what] != "" }
	files := 0
	walkGo(t, func(path string, set *token.FileSet, f *ast.File) {
		files++
		if n := set.Position(f.FileEnd).Line; n > maxFileLines && !excused(path) {
			t.Errorf("%s has %d lines, limit %d: split it by concept", path, n, maxFileLines)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			checkFunction(t, path, set, fn, excused)
		}
	})
	if files == 0 {
		t.Fatal("no Go file found")
	}
	for what := range allow {
		if !used[what] {
			t.Errorf("allow.txt: %s needs no exception any more", what)
		}
	}
}

func checkFunction(t *testing.T, path string, set *token.FileSet, fn *ast.FuncDecl, excused func(string) bool) {
	t.Helper()
	what := path + ":" + fn.Name.Name
	if n := set.Position(fn.End()).Line - set.Position(fn.Pos()).Line + 1; n > maxFunctionLines && !excused(what) {
		t.Errorf("%s has %d lines, limit %d", what, n, maxFunctionLines)
	}
	if n := parameters(fn); n > maxParameters && !excused(what) {
		t.Errorf("%s takes %d parameters besides ctx, limit %d", what, n, maxParameters)
	}
	if fn.Name.Name == "init" && fn.Recv == nil {
		t.Errorf("%s: init(): nothing happens by import", what)
	}
}

func parameters(fn *ast.FuncDecl) (n int) {
	for _, p := range fn.Type.Params.List {
		if s, ok := p.Type.(*ast.SelectorExpr); ok && s.Sel.Name == "Context" {
			continue
		}
		n += max(1, len(p.Names))
	}
	return n
}

// walkGo parses every Go file of the module that is no test.
func walkGo(t *testing.T, visit func(path string, set *token.FileSet, f *ast.File)) {
	t.Helper()
	walkFiles(t, func(rel, path string) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		visit(rel, set, f)
	})
}

// walkTests reads every Go test of the module.
func walkTests(t *testing.T, visit func(path, text string)) {
	t.Helper()
	walkFiles(t, func(rel, path string) {
		if !strings.HasSuffix(path, "_test.go") {
			return
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		visit(rel, string(text))
	})
}

func walkFiles(t *testing.T, visit func(rel, path string)) {
	t.Helper()
	top := root(t)
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != top && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		rel, err := filepath.Rel(top, path)
		visit(filepath.ToSlash(rel), path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
