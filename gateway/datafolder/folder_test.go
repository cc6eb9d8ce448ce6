package datafolder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestM11TheIdentityIsNeverMadeAnewBesideData, nor taken from a file that was changed.
func TestM11TheIdentityIsNeverMadeAnewBesideData(t *testing.T) {
	open := func(dir string) (string, error) {
		f, err := Open(dir)
		if err != nil {
			return "", err
		}
		f.Close()
		return f.ID, nil
	}
	dir := t.TempDir()
	id, err := open(dir)
	if err != nil {
		t.Fatal(err)
	}
	file, second := filepath.Join(dir, "id"), filepath.Join(dir, "state", "id")
	other := "0123456789abcdef\n"
	for name, c := range map[string]struct {
		do   func() error
		want string // a part of the error, empty for none
	}{
		"nothing":           {func() error { return nil }, ""},
		"no second":         {func() error { return os.Remove(second) }, ""},
		"no second folder":  {func() error { return os.RemoveAll(filepath.Dir(second)) }, ""},
		"a damaged second":  {func() error { return os.WriteFile(second, []byte("x"), 0o600) }, ""},
		"no id":             {func() error { return os.Remove(file) }, "echo " + id + " > " + file},
		"a damaged id":      {func() error { return os.WriteFile(file, []byte("x"), 0o600) }, "echo " + id + " > " + file},
		"another id":        {func() error { return os.WriteFile(file, []byte(other), 0o600) }, "into both"},
		"no id and no copy": {func() error { return os.Rename(second, filepath.Join(dir, "state", "x")) }, "is missing beside data (state)"},
	} {
		for _, path := range []string{file, second} {
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(id+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if name == "no id and no copy" {
			os.Remove(file)
		}
		if err := c.do(); err != nil {
			t.Fatal(name, err)
		}
		got, err := open(dir)
		if c.want == "" && (err != nil || got != id) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		os.Remove(filepath.Join(dir, "state", "x"))
	}
	if fresh, err := open(t.TempDir()); err != nil || fresh == id {
		t.Errorf("%q, %v", fresh, err)
	}
}

func TestOneProcessAFolder(t *testing.T) {
	dir := t.TempDir()
	first, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "in use by process") {
		t.Errorf("F12: a second lock: %v", err)
	}
	id := first.ID
	first.Close()
	second, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if second.ID != id || len(id) != 16 {
		t.Errorf("the identity changed from %q to %q", id, second.ID)
	}
}

func TestDamagedIdentityIsNotReplaced(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "id"), []byte("0123\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if f, err := Open(dir); err == nil {
		f.Close()
		t.Error("a damaged id was accepted: what is stored under the old one would be orphaned")
	}
}
