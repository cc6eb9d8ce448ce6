package settings

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/go-viper/mapstructure/v2"
)

// tag is the struct tag that names a setting, so that the same struct serves YAML, JSON and --set.
const tag = "json"

// Decode fills the struct that into points to from t. Every unknown key, every value of the wrong kind is a *PathError of
// its own in the joined result; everything else is filled in all the same, so that it can be looked at.
func (t Tree) Decode(into any) error {
	var problems []error
	for rest := t.clone(); ; {
		unknown, failed := rest.decode(into)
		problems = append(problems, failed...)
		again := false
		for _, err := range failed {
			if pe, ok := err.(*PathError); ok && rest.remove(pe.Path) {
				again = true // what the library did not reach because of it
			}
		}
		if !again {
			return errors.Join(append(problems, unknown...)...)
		}
	}
}

func (t Tree) decode(into any) (unknown, failed []error) {
	var seen mapstructure.Metadata
	d, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{
		Result: into, TagName: tag, Metadata: &seen, MatchName: func(key, field string) bool { return key == field },
		DecodeHook: mapstructure.ComposeDecodeHookFunc(sameKind, scalarToText, mapstructure.TextUnmarshallerHookFunc()),
	})
	if err != nil {
		return nil, []error{err}
	}
	if err := d.Decode(map[string]any(t)); err != nil {
		failed = flatten(err)
	}
	for _, key := range seen.Unused {
		path := dotted(key)
		unknown = append(unknown, &PathError{path, fmt.Errorf("unknown setting%s", nearest(last(path), siblings(into, path)))})
	}
	return unknown, failed
}

// scalarToText lets a number or boolean reach a type that reads itself from text: `partitions: 16`.
func scalarToText(from, to reflect.Type, value any) (any, error) {
	if !reflect.PointerTo(to).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return value, nil
	}
	switch from.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int64, reflect.Uint64, reflect.Float64:
		return fmt.Sprint(value), nil
	}
	return value, nil
}

var quotedPath = regexp.MustCompile(`^'([^']*)' ?`)

// flatten takes the library's joined errors apart and puts the path in front of each.
func flatten(err error) (all []error) {
	if joined := leaves(err); len(joined) != 1 || joined[0] != err {
		for _, e := range joined {
			all = append(all, flatten(e)...)
		}
		return all
	}
	if de, ok := errors.AsType[*mapstructure.DecodeError](err); ok {
		if inner := de.Unwrap(); inner != nil {
			return []error{&PathError{dotted(de.Name()), errors.New(reason(inner))}}
		}
	}
	text := err.Error()
	if m := quotedPath.FindStringSubmatch(text); m != nil {
		return []error{&PathError{dotted(m[1]), errors.New(strings.TrimPrefix(text, m[0]))}}
	}
	return []error{errors.New(text)}
}

func reason(err error) string {
	if u, ok := errors.AsType[*mapstructure.UnconvertibleTypeError](err); ok {
		return fmt.Sprintf("wants %s, got %v", kindName(u.Expected.Type()), u.Value)
	}
	return err.Error()
}

func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct:
		return "a map of settings"
	case reflect.Map:
		return "a map of names"
	case reflect.Slice:
		return "a list"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "text"
	}
	return "a number"
}

// dotted turns the library's streams[web].key into streams.web.key.
func dotted(path string) string {
	return strings.TrimPrefix(strings.NewReplacer("[", ".", "]", "").Replace(path), ".")
}

func last(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// siblings returns the valid keys beside path in the struct that v is or points to.
func siblings(v any, path string) []string {
	t := reflect.TypeOf(v)
	keys := strings.Split(path, ".")
	for _, key := range keys[:len(keys)-1] {
		t = child(deref(t), key)
		if t == nil {
			return nil
		}
	}
	return fieldNames(deref(t))
}

func child(t reflect.Type, key string) reflect.Type {
	switch t.Kind() {
	case reflect.Map, reflect.Slice:
		return t.Elem()
	case reflect.Struct:
		for f := range t.Fields() {
			if name(f) == key {
				return f.Type
			}
		}
	}
	return nil
}

func deref(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

func fieldNames(t reflect.Type) (all []string) {
	if t.Kind() != reflect.Struct {
		return nil
	}
	for f := range t.Fields() {
		all = append(all, name(f))
	}
	return all
}

func name(f reflect.StructField) string {
	n, _, _ := strings.Cut(f.Tag.Get(tag), ",")
	return n
}

// scalarPaths lists the dotted paths of all settings in the struct v that hold one value and stand under no map.
func scalarPaths(v any) []string { return scalars(deref(reflect.TypeOf(v)), "") }

func scalars(t reflect.Type, prefix string) (all []string) {
	for f := range t.Fields() {
		path, ft := prefix+name(f), deref(f.Type)
		switch {
		case reflect.PointerTo(ft).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
			all = append(all, path)
		case ft.Kind() == reflect.Struct:
			all = append(all, scalars(ft, path+".")...)
		case ft.Kind() != reflect.Map && ft.Kind() != reflect.Slice:
			all = append(all, path)
		}
	}
	return all
}

// nearest returns a hint that names the candidate closest to word, or all of them when none is close and they are few.
func nearest(word string, candidates []string) string {
	best, distance := "", 1+max(3, len(word)/3)
	for _, c := range candidates {
		if d := levenshtein.ComputeDistance(word, c); d < distance && 2*d <= max(len(word), len(c)) {
			best, distance = c, d
		}
	}
	switch {
	case best != "":
		return "; did you mean " + strconv.Quote(best) + "?"
	case len(candidates) > 0 && len(candidates) <= 24:
		return "; valid here: " + strings.Join(candidates, ", ")
	}
	return ""
}
