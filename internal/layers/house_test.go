package layers

import (
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

func TestEveryPackageSaysItsPurpose(t *testing.T) {
	said := map[string]bool{}
	walkGo(t, func(path string, _ *token.FileSet, f *ast.File) {
		dir := path[:max(0, strings.LastIndexByte(path, '/'))]
		doc := f.Doc.Text()
		said[dir] = said[dir] || strings.HasPrefix(doc, "Package ") || strings.HasPrefix(doc, "Command ")
	})
	for dir, ok := range said {
		if !ok {
			t.Errorf("%s: no sentence of purpose on top of the package", dir)
		}
	}
}

func TestExportedNamesAreDocumented(t *testing.T) {
	walkGo(t, func(path string, _ *token.FileSet, f *ast.File) {
		if f.Name.Name == "main" {
			return
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.IsExported() && exportedReceiver(fn) && fn.Doc == nil {
				t.Errorf("%s: %s has no doc comment", path, fn.Name.Name)
			}
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE {
				undocumentedTypes(t, path, g)
			}
		}
	})
}

func exportedReceiver(fn *ast.FuncDecl) bool {
	if fn.Recv == nil {
		return true
	}
	typ := fn.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	id, ok := typ.(*ast.Ident)
	return !ok || id.IsExported()
}

func undocumentedTypes(t *testing.T, path string, g *ast.GenDecl) {
	t.Helper()
	for _, s := range g.Specs {
		if ts := s.(*ast.TypeSpec); ts.Name.IsExported() && g.Doc == nil && ts.Doc == nil && ts.Comment == nil {
			t.Errorf("%s: type %s has no doc comment", path, ts.Name.Name)
		}
	}
}

func TestTestsDoNotSleep(t *testing.T) {
	walkTests(t, func(path, text string) {
		if strings.Contains(text, "time."+"Sleep(") {
			t.Errorf("%s sleeps: wait on the condition, or use testing/synctest", path)
		}
	})
}
