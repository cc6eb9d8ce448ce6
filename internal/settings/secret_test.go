package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadSecret(t *testing.T) {
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return "file:" + path
	}
	t.Setenv("SECRET_OF_A_TEST", "s3cret\n")
	t.Setenv("BLANK_OF_A_TEST", " ")
	for ref, want := range map[string]string{file("abc\n"): "abc", file("new\nold\n"): "new\nold", "env:SECRET_OF_A_TEST": "s3cret"} {
		if got, err := ReadSecret(ref); err != nil || got != want {
			t.Errorf("%s: %q, %v", ref, got, err)
		}
	}
	for ref, want := range map[string]string{
		"":                                       "is missing",
		"hunter2":                                "must be file:PATH or env:NAME",
		"hunter2:x":                              "must be file:PATH or env:NAME",
		"env:":                                   "must be file:PATH or env:NAME",
		"env:UNSET_OF_A_TEST":                    "UNSET_OF_A_TEST is not set",
		"env:BLANK_OF_A_TEST":                    "or empty",
		"file:/does/not/exist":                   "no such file",
		file("\n"):                               "is empty",
		file(strings.Repeat("x", secretBytes+1)): "larger than 65536 bytes",
	} {
		_, err := ReadSecret(ref)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %s", ref, err, want)
		}
	}
}
