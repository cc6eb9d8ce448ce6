package main

import (
	"strings"

	"github.com/goccy/go-yaml"
)

// setPath carries out one path=value on a tree of settings: the path is names with dots between them, the value YAML.
// An empty value takes the setting out.
func setPath(tree map[string]any, setting string) error {
	path, text, ok := strings.Cut(setting, "=")
	if !ok || path == "" {
		return usagef("%q is not of the form path=value", setting)
	}
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		return usagef("the value of %s is no YAML: %w", path, err)
	}
	names := strings.Split(path, ".")
	for i, name := range names[:len(names)-1] {
		switch below := tree[name].(type) {
		case map[string]any:
			tree = below
		case nil:
			fresh := map[string]any{}
			tree[name] = fresh
			tree = fresh
		default:
			return usagef("%s has a value, so %s can't be set in it", strings.Join(names[:i+1], "."), path)
		}
	}
	last := names[len(names)-1]
	if value == nil {
		delete(tree, last)
		return nil
	}
	tree[last] = value
	return nil
}
