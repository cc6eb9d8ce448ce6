// Command cases prints docs/cases.md: which test covers which of the cases in cases.txt.
package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

//go:embed cases.txt
var list string

func main() {
	page, err := table(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "cases:", err)
		os.Exit(1)
	}
	os.Stdout.Write(page)
}

// table renders the page from the tests below root.
func table(root string) ([]byte, error) {
	found, err := tests(root)
	if err != nil {
		return nil, err
	}
	var page bytes.Buffer
	page.WriteString("# Cases\n\nFailures that users of gateways, collectors and brokers have reported, what is required here instead, and the tests\n" +
		"that hold it. `make cases` writes this page from the names of the tests; what no test covers yet says so.\n")
	for line := range strings.Lines(list) {
		line = strings.TrimSpace(line)
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			fmt.Fprintf(&page, "\n## %s\n\n%s| case | required | tests |\n|---|---|---|\n", heading, remark(heading))
			continue
		}
		id, required, ok := strings.Cut(line, " ")
		if !ok || !caseID.MatchString(id) {
			continue
		}
		fmt.Fprintf(&page, "| %s | %s | %s |\n", id, required, cell(found[id]))
	}
	return page.Bytes(), nil
}

// remark is the line behind a heading of the list that begins with >, if there is one.
func remark(heading string) string {
	_, rest, _ := strings.Cut(list, "## "+heading+"\n")
	line, _, _ := strings.Cut(rest, "\n")
	if text, ok := strings.CutPrefix(line, "> "); ok {
		return text + "\n\n"
	}
	return ""
}

// cell lists tests by folder, each as often as it covers the case.
func cell(names []string) string {
	if len(names) == 0 {
		return "none yet"
	}
	slices.Sort(names)
	return "`" + strings.Join(slices.Compact(names), "`, `") + "`"
}

var (
	caseID   = regexp.MustCompile(`^[A-R]\d\d$`)
	inName   = regexp.MustCompile(`^Test((?:[A-R]\d\d)+)[A-Z]`)
	eachID   = regexp.MustCompile(`[A-R]\d\d`)
	inString = regexp.MustCompile(`^([A-R]\d\d) `)
)

// tests finds the tests below root by the cases in their names, or in the names of their rows: "D04 blank lines".
func tests(root string) (map[string][]string, error) {
	found := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Test") {
				for _, id := range ids(f) {
					found[id] = append(found[id], filepath.ToSlash(folder)+"."+f.Name.Name)
				}
			}
		}
		return nil
	})
	return found, err
}

// ids are the cases that a test names.
func ids(f *ast.FuncDecl) (all []string) {
	if m := inName.FindStringSubmatch(f.Name.Name); m != nil {
		all = eachID.FindAllString(m[1], -1)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				if m := inString.FindStringSubmatch(text); m != nil {
					all = append(all, m[1])
				}
			}
		}
		return true
	})
	return all
}
