package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/headgate-io/headgate/plugins"
)

// projectFile is what makes a folder one of a plugin.
const projectFile = "headgate.json"

// project is a plugin's folder, as `plugin init` makes it.
type project struct {
	dir string

	Name     string          `json:"name"`
	Language string          `json:"language"`
	Config   json.RawMessage `json:"config,omitempty"` // of the tests
	Events   string          `json:"events,omitempty"` // file in the folder
	Expect   string          `json:"expect,omitempty"` // file in the folder: see expectations
	Key      string          `json:"key,omitempty"`    // JSON pointer of the built-in extractor that `plugin bench` compares with
}

func openProject(dir string) (*project, error) {
	text, err := os.ReadFile(filepath.Join(dir, projectFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usagef("%s has no %s, so it is no folder of a plugin; headgate plugin init --lang LANGUAGE NAME makes one", dir, projectFile)
	}
	if err != nil {
		return nil, usageError(err)
	}
	p := project{dir: dir}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return nil, usagef("%s: %v", filepath.Join(dir, projectFile), err)
	}
	return &p, checkProjectName(p.Name)
}

// checkProjectName lets through what is a name for files, crates and modules alike.
func checkProjectName(name string) error {
	good := name != "" && len(name) <= 64 && name != "headgate" && name[0] >= 'a' && name[0] <= 'z'
	for _, c := range []byte(name) {
		good = good && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_')
	}
	if !good {
		return usagef("%q can't be a plugin's name: give at most 64 of a-z, 0-9, - and _, a letter first (headgate is taken by the SDK)", name)
	}
	return nil
}

// module is the file that `plugin build` makes.
func (p *project) module() string { return p.path(p.Name + ".wasm") }

// path is a file of the folder; "" stays "".
func (p *project) path(file string) string {
	if file == "" {
		return ""
	}
	return filepath.Join(p.dir, file)
}

// subject is a module and what its project, if it has one, says about it.
type subject struct {
	project
	file string
	wasm []byte
}

// openSubject takes the module of a folder, or a module; no argument is the folder at hand.
func openSubject(args []string) (*subject, error) {
	at := "."
	if len(args) > 0 {
		at = args[0]
	}
	s := &subject{file: at}
	if info, err := os.Stat(at); err == nil && info.IsDir() {
		p, err := openProject(at)
		if err != nil {
			return nil, err
		}
		s.project, s.file = *p, p.module()
	}
	var err error
	if s.wasm, err = os.ReadFile(s.file); err == nil {
		return s, nil
	}
	if s.dir != "" && errors.Is(err, fs.ErrNotExist) {
		return nil, usageError(fmt.Errorf("%s is not there yet: make it with headgate plugin build %s", s.file, s.dir))
	}
	return nil, usageError(err)
}

// config is what --config says, else the project.
func (s *subject) config(given string) (json.RawMessage, error) {
	if given == "" {
		if !plugins.ConfigFits(s.Config) {
			return nil, usagef(`config in headgate.json is no JSON object; it looks like {"name": "value"}`)
		}
		return s.Config, nil
	}
	return readConfig(given)
}
