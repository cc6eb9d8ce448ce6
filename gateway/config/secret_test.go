package config

import (
	"os"
	"path/filepath"
	"testing"
)

// secretFile writes a secret and returns its reference.
func secretFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "file:" + path
}
