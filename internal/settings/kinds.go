package settings

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
)

// exampled is a type that shows how it is written: YAML in flow style, {level: debug}.
type exampled interface{ Example() string }

// sameKind refuses what would be cut to fit, and says what is expected in the place of a value of another kind. What
// stands there is not repeated: it may be a secret.
func sameKind(from, to reflect.Type, value any) (any, error) {
	switch kind := to.Kind(); {
	case kind == reflect.Pointer || kind == reflect.Interface:
		return value, nil // asked again for what it points to
	case reflect.PointerTo(to).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		if from.Kind() == reflect.Slice || from.Kind() == reflect.Map && kind != reflect.Struct {
			return nil, wants(from, to)
		}
	case (kind == reflect.Struct || kind == reflect.Map) && from.Kind() != reflect.Map,
		kind == reflect.Slice && from.Kind() != reflect.Slice:
		return nil, wants(from, to)
	case kind >= reflect.Int && kind <= reflect.Uint64:
		return value, whole(value)
	}
	return value, nil
}

// whole refuses numbers that are no int64.
func whole(value any) error {
	switch v := value.(type) {
	case float64:
		if v != math.Trunc(v) {
			return fmt.Errorf("wants a whole number, got %v", v)
		}
		if math.Abs(v) >= 1<<62 {
			return fmt.Errorf("%v is too large", v)
		}
	case uint64:
		if v > math.MaxInt64 {
			return fmt.Errorf("%v is too large", v)
		}
	}
	return nil
}

func wants(from, to reflect.Type) error {
	text := "wants " + kindName(to)
	switch example := exampleOf(to); {
	case example != "" && to.Kind() != reflect.Struct && to.Kind() != reflect.Map && to.Kind() != reflect.Slice:
		text = "wants a value like " + example
	case example != "":
		text += ", like " + example
	case to.Kind() == reflect.Struct:
		text += ": " + strings.Join(fieldNames(to), ", ")
	}
	return errors.New(text + "; got " + givenName(from))
}

func exampleOf(t reflect.Type) string {
	if e, ok := reflect.Zero(t).Interface().(exampled); ok {
		return e.Example()
	}
	switch t.Kind() {
	case reflect.Slice:
		if one := exampleOf(deref(t.Elem())); one != "" {
			return "[" + one + "]"
		}
		if t.Elem().Kind() == reflect.String {
			return "[one, another]"
		}
	case reflect.Map:
		if one := exampleOf(deref(t.Elem())); one != "" {
			return "{NAME: " + one + "}"
		}
	}
	return ""
}

func givenName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Map:
		return "a map"
	case reflect.Slice:
		return "a list"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a word or text"
	}
	return "a number"
}
