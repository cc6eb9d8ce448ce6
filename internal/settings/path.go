package settings

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// PathError is what is wrong with one setting.
type PathError struct {
	Path string // dotted
	Err  error
}

// Error puts the path in front.
func (e *PathError) Error() string { return e.Path + ": " + e.Err.Error() }

// Unwrap returns what is wrong.
func (e *PathError) Unwrap() error { return e.Err }

// At says of every error that is joined in err that it is about the setting at path, or about what err says below it.
// Nil stays nil.
func At(path string, err error) error {
	var all []error
	for _, e := range leaves(err) {
		if below, ok := e.(*PathError); ok {
			path, e := path+"."+below.Path, below.Err
			all = append(all, &PathError{path, e})
			continue
		}
		all = append(all, &PathError{path, e})
	}
	return errors.Join(all...)
}

// Except returns the errors joined in err but those about a setting of which a part has failed already, so that there
// is no reason to look at the rest.
func Except(err, failed error) error {
	var all []error
	for _, e := range leaves(err) {
		pe, ok := e.(*PathError)
		if !ok || !slices.ContainsFunc(leaves(failed), func(f error) bool {
			fe, ok := f.(*PathError)
			return ok && (fe.Path == pe.Path || strings.HasPrefix(fe.Path, pe.Path+"."))
		}) {
			all = append(all, e)
		}
	}
	return errors.Join(all...)
}

// leaves takes joined errors apart.
func leaves(err error) (all []error) {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	for _, e := range joined.Unwrap() {
		all = append(all, leaves(e)...)
	}
	return all
}

// clone copies the tree's maps and lists.
func (t Tree) clone() Tree { return Tree(cloned(map[string]any(t)).(map[string]any)) }

func cloned(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := maps.Clone(v)
		for k, e := range m {
			m[k] = cloned(e)
		}
		return m
	case []any:
		l := slices.Clone(v)
		for i, e := range l {
			l[i] = cloned(e)
		}
		return l
	}
	return v
}

// remove takes the value at a dotted path out, and reports whether there was one.
func (t Tree) remove(path string) bool {
	keys := strings.Split(path, ".")
	var at any = map[string]any(t)
	for _, k := range keys[:len(keys)-1] {
		at = entry(at, k)
	}
	last := keys[len(keys)-1]
	switch v := at.(type) {
	case map[string]any:
		_, ok := v[last]
		delete(v, last)
		return ok
	case []any:
		if i, err := strconv.Atoi(last); err == nil && i >= 0 && i < len(v) && v[i] != nil {
			v[i] = nil
			return true
		}
	}
	return false
}

func entry(v any, key string) any {
	switch v := v.(type) {
	case map[string]any:
		return v[key]
	case []any:
		if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(v) {
			return v[i]
		}
	}
	return nil
}
