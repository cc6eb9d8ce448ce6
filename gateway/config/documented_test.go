package config

import (
	"encoding"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The page of all settings has each setting there is, and no other, with the default that it has.
func TestEverySettingIsDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z0-9_.*]+)` \\| (?:`([^`]*)`)?").FindAllStringSubmatch(string(text), -1) {
		said[m[1]] = m[2]
	}
	is := map[string]string{}
	cfg := Default()
	stream := Stream{}.WithDefaults()
	stream.Plugins = []Plugin{{}}
	stream.Types = nil // a list
	cfg.Streams = map[string]Stream{"*": stream}
	cfg.Backends = map[string]Backend{"*": {JetStream: &JetStream{}, Webhook: &Webhook{}}}
	cfg.Auth = &Auth{Tokens: []Token{{}}}
	cfg.Rates.Callers = nil // as rates.caller
	leaves("", reflect.ValueOf(cfg), is)
	for _, whole := range []string{"auth.tokens", "rates.caller", "rates.callers.*"} {
		delete(said, whole) // explained as a whole besides
	}
	delete(is, "rates.callers")
	for path, value := range is {
		if got, ok := said[path]; !ok || got != value {
			t.Errorf("%s: documented %v, as %q; its default is %q", path, ok, got, value)
		}
	}
	for path := range said {
		if _, ok := is[path]; !ok {
			t.Errorf("%s is documented and is no setting", path)
		}
	}
}

// leaves collects the settings in v by path, with their values as they are written; empty for those without one.
func leaves(path string, v reflect.Value, into map[string]string) {
	if text, ok := v.Interface().(encoding.TextMarshaler); ok && v.Kind() != reflect.Struct {
		if !v.IsZero() {
			b, _ := text.MarshalText()
			into[path] = string(b)
			return
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			into[path] = ""
			return
		}
		leaves(path, v.Elem(), into)
	case reflect.Struct:
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			leaves(strings.TrimPrefix(path+"."+name, "."), v.Field(i), into)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			leaves(path+"."+key.String(), v.MapIndex(key), into)
		}
		if v.Len() == 0 {
			into[path] = ""
		}
	case reflect.Slice:
		if v.Len() == 0 {
			into[path] = ""
		}
		for i := range v.Len() {
			leaves(path+".*", v.Index(i), into)
		}
	default:
		into[path] = defaultOf(path, v)
	}
}

// defaultOf is how a default is written: zero that means "none" is not.
func defaultOf(path string, v reflect.Value) string {
	zeroSaid := []string{"http.max_requests_per_connection", "streams.*.rate.keys", "streams.*.key.required", "streams.*.id.none", "plugins.require_signature"}
	if v.Kind() == reflect.Interface || v.IsZero() && !slices.Contains(zeroSaid, path) {
		return ""
	}
	return fmt.Sprint(v.Interface())
}
