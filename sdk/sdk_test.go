package sdk

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

func TestL18HelloWorldHasAtMost15Lines(t *testing.T) {
	for _, lang := range Languages() {
		files, err := Scaffold(lang, "demo")
		if err != nil {
			t.Fatal(err)
		}
		l, _ := languages(lang)
		source, ok := files[l.Source]
		if n := bytes.Count(source, []byte("\n")); !ok || n > 15 {
			t.Errorf("%s: %s has %d lines", lang, l.Source, n)
		}
	}
}

func TestL17ScaffoldIsSelfContained(t *testing.T) {
	for _, lang := range Languages() {
		files, err := Scaffold(lang, "demo")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"README.md", "headgate.json", "events.ndjson", "expect.ndjson", ".gitignore"} {
			if len(files[name]) == 0 {
				t.Errorf("%s: no %s", lang, name)
			}
		}
		sdk := 0
		for name, text := range files {
			if strings.HasSuffix(name, ".tmpl") || strings.HasSuffix(name, "_test.go") || bytes.Contains(text, []byte("{{.")) {
				t.Errorf("%s: %s", lang, name)
			}
			if strings.HasPrefix(name, "headgate/") {
				sdk++
			}
		}
		if sdk == 0 {
			t.Errorf("%s: no SDK within", lang)
		}
	}
	if _, err := Scaffold("cobol", "demo"); err == nil || !strings.Contains(err.Error(), "go, rust, c, assemblyscript") {
		t.Error(err)
	}
}

// The plugins on the page are those that plugin init writes.
func TestL18PageShowsTheScaffolds(t *testing.T) {
	page, err := os.ReadFile("../docs/plugins.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, lang := range Languages() {
		files, err := Scaffold(lang, "demo")
		if err != nil {
			t.Fatal(err)
		}
		l, _ := languages(lang)
		_, code, _ := bytes.Cut(files[l.Source], []byte("\n")) // without the comment on top
		if !bytes.Contains(page, code) {
			t.Errorf("docs/plugins.md does not show this:\n%s", code)
		}
	}
}
