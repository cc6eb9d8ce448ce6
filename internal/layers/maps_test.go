package layers

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// mapLine is a line of a map of files in a doc.go: names of files, two blanks, and what they are for; or more of that alone,
	// where further files may be named.
	mapLine  = regexp.MustCompile(`(?m)^//\t(.+)$`)
	mapNames = regexp.MustCompile(`^[a-z0-9_]+(?:, [a-z0-9_]+)*  `)
	mapWord  = regexp.MustCompile(`[a-z0-9_]+`)
)

// compareMap returns which files of a folder the map in its doc.go does not name, and which names have no file; ok is false when
// it has no map. A name is of a file, or of all that begin with it and an underscore.
func compareMap(doc string, files []string) (unnamed, gone []string, ok bool) {
	var words, names []string
	for _, line := range mapLine.FindAllStringSubmatch(doc, -1) {
		words = append(words, mapWord.FindAllString(line[1], -1)...)
		names = append(names, mapWord.FindAllString(mapNames.FindString(line[1]), -1)...)
	}
	belongs := func(file, name string) bool { return file == name+".go" || strings.HasPrefix(file, name+"_") }
	for _, file := range files {
		named := func(word string) bool { return belongs(file, word) }
		if file != "doc.go" && !strings.HasSuffix(file, "_test.go") && !slices.ContainsFunc(words, named) {
			unnamed = append(unnamed, file)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(files, func(file string) bool { return belongs(file, name) }) {
			gone = append(gone, name)
		}
	}
	return unnamed, gone, len(names) > 0
}

// Who looks for something in a folder with a map of its files finds each of them there, and nobody looks for one that is gone.
func TestMapsOfFilesAreWhole(t *testing.T) {
	maps := 0
	walkFiles(t, func(rel, path string) {
		if filepath.Base(rel) != "doc.go" {
			return
		}
		doc, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for i := range found {
			found[i] = filepath.Base(found[i])
		}
		unnamed, gone, ok := compareMap(string(doc), found)
		if !ok {
			return
		}
		maps++
		for _, file := range unnamed {
			t.Errorf("%s does not name %s: add its name to the line of what it belongs to, or a line that says what it is for", rel, file)
		}
		for _, name := range gone {
			t.Errorf("%s names %s, and no file is called that: take it out, or write what the file is called now", rel, name)
		}
	})
	if maps == 0 {
		t.Error("no doc.go has a map of its files: write its lines as a tab, names, at least two blanks, and what they are for")
	}
}

func TestAMapIsCompared(t *testing.T) {
	doc := "// Package a is one.\n//\n//\ta, b      what a does; c is a part\n//\t          of it, and d_x\n//\told       gone\npackage a\n"
	unnamed, gone, ok := compareMap(doc, []string{"a.go", "a_linux.go", "b_more.go", "c.go", "d.go", "d_x.go", "doc.go", "e_test.go", "package.go"})
	if !ok || !slices.Equal(unnamed, []string{"d.go", "package.go"}) || !slices.Equal(gone, []string{"old"}) {
		t.Errorf("unnamed %q, gone %q, a map %t", unnamed, gone, ok)
	}
	if _, _, ok := compareMap("// Package a is one.\npackage a\n", []string{"a.go"}); ok {
		t.Error("a map where there is none")
	}
}
