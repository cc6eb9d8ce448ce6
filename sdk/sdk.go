// Package sdk holds what a new plugin begins with: the SDK of each language, and a plugin that does little, with its tests.
package sdk

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"text/template"
)

//go:embed abi/abi.go plugin/*.go plugin/*.s c/headgate.h rust/Cargo.toml rust/src assemblyscript/*.ts scaffold
var files embed.FS

// language says how a plugin's folder looks. Title, Source, SDK and Needs are for its README.
type language struct {
	Title, Source, SDK, Needs string

	copies map[string]string // files of the SDK, as patterns, and the folder they go to
	extra  map[string]string // further files
}

// languages are a switch that Languages lists; the order is that of the documentation.
func languages(name string) (language, bool) {
	switch name {
	case "go":
		return language{
			Title: "Go", Source: "main.go", SDK: "headgate", Needs: "Go 1.24 or later",
			copies: map[string]string{"plugin/*.go": "headgate/sdk/plugin", "plugin/*.s": "headgate/sdk/plugin", "abi/abi.go": "headgate/sdk/abi"},
			extra:  map[string]string{"headgate/go.mod": "module github.com/headgate-io/headgate\n\ngo 1.24\n"},
		}, true
	case "rust":
		return language{
			Title: "Rust", Source: "src/lib.rs", SDK: "headgate", Needs: "rustc 1.63 or later with the target wasm32-unknown-unknown",
			copies: map[string]string{"rust/Cargo.toml": "headgate", "rust/src/*.rs": "headgate/src"},
		}, true
	case "c":
		return language{
			Title: "C", Source: "plugin.c", SDK: "headgate", Needs: "clang and its linker",
			copies: map[string]string{"c/headgate.h": "headgate"},
		}, true
	case "assemblyscript":
		return language{
			Title: "AssemblyScript", Source: "plugin.ts", SDK: "headgate",
			Needs:  "Node.js 20 or later and the compiler, which `headgate plugin build` fetches with npm (the network is needed once)",
			copies: map[string]string{"assemblyscript/*.ts": "headgate"},
		}, true
	}
	return language{}, false
}

// Languages returns the languages that plugins can be begun in.
func Languages() []string { return []string{"go", "rust", "c", "assemblyscript"} }

// Scaffold returns the files of a new plugin by their path in its folder. The language is one of Languages; the name is
// one that a crate may have: letters, digits, - and _, a letter first.
func Scaffold(lang, name string) (map[string][]byte, error) {
	l, ok := languages(lang)
	if !ok {
		return nil, fmt.Errorf("language %q: choose one of %s", lang, strings.Join(Languages(), ", "))
	}
	out := map[string][]byte{}
	for from, to := range l.copies {
		if err := l.copySDK(out, from, to); err != nil {
			return nil, err
		}
	}
	for file, text := range l.extra {
		out[file] = []byte(text)
	}
	values := struct {
		language
		Name, Language string
	}{l, name, lang}
	for _, folder := range []string{"scaffold/common", "scaffold/" + lang} {
		if err := fill(out, folder, values); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (l language) copySDK(out map[string][]byte, pattern, folder string) error {
	matches, err := fs.Glob(files, pattern)
	if err != nil {
		return err
	}
	for _, file := range matches {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		if out[path.Join(folder, path.Base(file))], err = files.ReadFile(file); err != nil {
			return err
		}
	}
	return nil
}

// fill adds the files of a folder; those that end in .tmpl are templates.
func fill(out map[string][]byte, folder string, values any) error {
	return fs.WalkDir(files, folder, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := files.ReadFile(file)
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(file, folder+"/")
		if bare, ok := strings.CutSuffix(name, ".tmpl"); ok {
			t, err := template.New(name).Parse(string(text))
			if err != nil {
				return err
			}
			var b bytes.Buffer
			if err := t.Execute(&b, values); err != nil {
				return err
			}
			name, text = bare, b.Bytes()
		}
		if name == "gitignore" { // a file with a dot in front would not be embedded
			name = ".gitignore"
		}
		out[name] = text
		return nil
	})
}
