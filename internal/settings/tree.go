// Package settings turns files, environment and command-line settings into structs: strictly, with every error
// named by its path and the nearest valid key.
package settings

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Tree is a document before it is decoded: nested maps by key, as YAML and JSON give them.
type Tree map[string]any

// Parse reads a YAML (or JSON) document. An empty document is an empty tree; a key given twice is an error.
func Parse(doc []byte) (Tree, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(doc, &root); err != nil {
		return nil, notYAML(err)
	}
	if root.Kind == yaml.DocumentNode && root.Content[0].Kind != yaml.MappingNode && root.Content[0].Tag != "!!null" {
		return nil, fmt.Errorf("line %d: the document wants a map of settings, like `name: value`", root.Content[0].Line)
	}
	t := map[string]any{} // not Tree: the decoder would make the nested maps Trees too
	if err := root.Decode(&t); err != nil {
		return nil, notYAML(err)
	}
	if t == nil { // null
		t = map[string]any{}
	}
	return t, nil
}

func notYAML(err error) error {
	return fmt.Errorf("parse YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
}

// Has reports whether one value, which is not null, stands at a dotted path.
func (t Tree) Has(path string) bool {
	var at any = map[string]any(t)
	for _, k := range strings.Split(path, ".") {
		at = entry(at, k)
	}
	switch at.(type) {
	case nil, map[string]any, []any:
		return false
	}
	return true
}

// Set puts a YAML value at a dotted path, making the maps on the way; what stood there is replaced. An empty value (or
// null) takes the setting out, so that its default holds.
func (t Tree) Set(path, value string) error {
	var v any
	if err := yaml.Unmarshal([]byte(value), &v); err != nil {
		return fmt.Errorf("%s: value %q is not YAML", path, value)
	}
	keys := strings.Split(path, ".")
	if slices.Contains(keys, "") {
		return fmt.Errorf("%q is not a path; write section.key=value", path)
	}
	at := map[string]any(t)
	for i, k := range keys[:len(keys)-1] {
		switch below := at[k].(type) {
		case map[string]any:
			at = below
		case nil:
			fresh := map[string]any{}
			at[k], at = fresh, fresh
		default:
			return fmt.Errorf("%s has a value, so %s cannot be set in it", strings.Join(keys[:i+1], "."), path)
		}
	}
	last := keys[len(keys)-1]
	if v == nil {
		delete(at, last)
		return nil
	}
	at[last] = v
	return nil
}

// Below returns the tree at a dotted path, nil when there is none.
func (t Tree) Below(path string) Tree {
	var at any = map[string]any(t)
	for _, k := range strings.Split(path, ".") {
		at = entry(at, k)
	}
	below, _ := at.(map[string]any)
	return below
}

// SetArgument is Set for the words of a command line: path=value.
func (t Tree) SetArgument(arg string) error {
	path, value, ok := strings.Cut(arg, "=")
	if !ok {
		return fmt.Errorf("%q is not a setting; write path=value", arg)
	}
	return t.Set(path, value)
}

// Environment sets the scalar settings of schema (a struct) that environ names: prefix, then the path in upper case with
// underscores (HEADGATE_HTTP_READ_TIMEOUT). It returns a warning for each name with the prefix that is no setting, with
// the nearest one, except for the reserved names.
func (t Tree) Environment(environ []string, prefix string, schema any, reserved ...string) (warnings []string, err error) {
	paths := map[string]string{}
	for _, p := range scalarPaths(schema) {
		paths[prefix+strings.ToUpper(strings.ReplaceAll(p, ".", "_"))] = p
	}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, prefix) || slices.Contains(reserved, name) {
			continue
		}
		path, ok := paths[name]
		if !ok {
			near := nearest(name, slices.Sorted(maps.Keys(paths)))
			warnings = append(warnings, fmt.Sprintf("%s in the environment is no setting and is ignored%s", name, near))
			continue
		}
		if err := t.Set(path, value); err != nil {
			return warnings, fmt.Errorf("%s: %w", name, err)
		}
	}
	return warnings, nil
}
