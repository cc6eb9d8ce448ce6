package control_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/control"
)

func openFiles(t *testing.T, dir string) *control.Files {
	t.Helper()
	f, err := control.OpenFiles(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// keep opens a store whose changes are copied to dir.
func keep(t *testing.T, dir string) *control.Store {
	t.Helper()
	s, _ := open(t, t.TempDir())
	if err := s.Keep(t.Context(), openFiles(t, dir)); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestF22RestoreFromFiles(t *testing.T) {
	dir := t.TempDir()
	s := keep(t, dir)
	module := bytes.Repeat([]byte("module"), 100_000)
	write(t, s.Streams, "other", `1`, 0)
	revision := write(t, s.Streams, "web", `{"key":{"json":"/<a>"}}`, 0)
	revision = write(t, s.Streams, "web", `{"key":{"json":"/b"}}`, revision)
	write(t, s.Activations, "web.deadletter", "not JSON\x00\xff", 0)
	write(t, s.Tables, "web", `{"version":1}`, 0)
	gone := write(t, s.Tables, "gone", `{}`, 0)
	if err := s.Tables.Delete(t.Context(), "gone", gone); err != nil {
		t.Fatal(err)
	}
	secret, err := s.Secret(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	v, _, err := s.Plugins.Add(t.Context(), "accesslog", module, control.Version{Report: []byte(`{"ok":true}`)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context(), openFiles(t, dir)); err != nil {
		t.Errorf("the store it was made of: %v", err)
	}

	next, _ := open(t, t.TempDir())
	files := openFiles(t, dir)
	if _, ok := errors.AsType[*control.LostError](next.Check(t.Context(), files)); !ok || files.Empty() || files.Whole() != nil {
		t.Fatalf("an empty store: ok %v, files empty %v, %v", ok, files.Empty(), files.Whole())
	}
	if err := next.Restore(t.Context(), files); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(next.Check(t.Context(), files), next.Keep(t.Context(), files)); err != nil {
		t.Errorf("after the restoration: %v", err)
	}
	web, err := next.Streams.Read(t.Context(), "web")
	if err != nil || string(web.Value) != `{"key":{"json":"/b"}}` || web.Revision <= revision {
		t.Errorf("%s at revision %d (was %d), %v", web.Value, web.Revision, revision, err)
	}
	if doc, err := next.Activations.Read(t.Context(), "web.deadletter"); err != nil || string(doc.Value) != "not JSON\x00\xff" {
		t.Errorf("%q, %v", doc.Value, err)
	}
	if docs, err := next.Tables.List(t.Context()); err != nil || len(docs) != 1 {
		t.Errorf("tables %v, %v", docs, err)
	}
	if got, err := next.Secret(t.Context(), "web"); err != nil || got != secret {
		t.Errorf("another secret, %v", err)
	}
	if got, err := next.Plugins.Module(t.Context(), v.Digest); err != nil || !bytes.Equal(got, module) {
		t.Errorf("module: %d bytes, %v", len(got), err)
	}
	if p, err := next.Plugins.Read(t.Context(), "accesslog"); err != nil || len(p.Versions) != 1 || string(p.Versions[0].Report) != `{"ok":true}` {
		t.Errorf("plugin %+v, %v", p, err)
	}
}

// TestF22WhatCountsAsLost: the store may be ahead of the files, never behind.
func TestF22WhatCountsAsLost(t *testing.T) {
	dir := t.TempDir()
	s := keep(t, dir)
	revision := write(t, s.Streams, "web", `1`, 0)
	file := filepath.Join(dir, "streams", "web.json")
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, s.Streams, "web", `2`, revision)
	for name, c := range map[string]struct {
		content string
		lost    bool
	}{
		"older": {string(old), false}, "newer": {`{"revision":99,"value":3}`, true}, "damaged": {`{"revision":99`, false}, "none": {"", false},
	} {
		if err := os.WriteFile(file, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		files := openFiles(t, dir)
		if _, lost := errors.AsType[*control.LostError](s.Check(t.Context(), files)); lost != c.lost {
			t.Errorf("%s: lost %v", name, lost)
		}
		if c.lost {
			continue
		}
		if err := s.Keep(t.Context(), files); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || !strings.Contains(string(got), `"value":2`) {
			t.Errorf("%s: not written again: %s, %v", name, got, err)
		}
	}
}

func TestF22LostFilesAreWrittenAgain(t *testing.T) {
	dir := t.TempDir()
	s := keep(t, dir)
	write(t, s.Streams, "web", `1`, 0)
	v, _, err := s.Plugins.Add(t.Context(), "p", []byte("module"), control.Version{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	files := openFiles(t, dir)
	if err := errors.Join(s.Check(t.Context(), files), s.Keep(t.Context(), files)); err != nil || files.Empty() {
		t.Errorf("%v, empty %v", err, files.Empty())
	}
	module := filepath.Join(dir, "modules", strings.TrimPrefix(v.Digest, "sha256:")+".wasm")
	if got, err := os.ReadFile(module); string(got) != "module" {
		t.Errorf("%q, %v", got, err)
	}
	if err := s.Plugins.Remove(t.Context(), "p"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(module); err == nil {
		t.Error("the module of a removed plugin is still kept")
	}
}

// TestF22DamagedFilesAreNamed cuts a file at each byte: what is left is the whole document or named as damaged.
func TestF22DamagedFilesAreNamed(t *testing.T) {
	dir := t.TempDir()
	s := keep(t, dir)
	if _, err := s.Secret(t.Context(), "web"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "secrets", "web.json")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(content) - 1 { // the last byte is white space
		if err := os.WriteFile(file, content[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if err := openFiles(t, dir).Whole(); err == nil || !strings.Contains(err.Error(), file) {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
}

// TestM11EveryDamageToACopiedDocumentIsNoticed, or changes nothing that counts.
func TestM11EveryDamageToACopiedDocumentIsNoticed(t *testing.T) {
	dir := t.TempDir()
	s := keep(t, dir)
	const value = `[{"plugin":"p","digest":"sha256:0a1b","config":{"drop_status_from":500,"a":"<&>"}}]`
	write(t, s.Activations, "web", value, 0)
	path := filepath.Join(dir, "activations", "web.json")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	noticed := 0
	for at := range good {
		for _, bit := range []int{0, 5, 7} {
			bad := bytes.Clone(good)
			bad[at] ^= 1 << bit
			if err := os.WriteFile(path, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			files := openFiles(t, dir)
			if files.Whole() != nil {
				noticed++
				continue
			}
			if !bytes.Contains(bad, []byte(value)) {
				t.Fatalf("bit %d of byte %d: %s is taken for whole", bit, at, bad)
			}
		}
	}
	if noticed < 2*len(good) {
		t.Errorf("%d of %d damages noticed", noticed, 3*len(good))
	}
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := openFiles(t, dir).Whole(); err != nil {
		t.Errorf("undamaged: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := openFiles(t, dir).Whole(); err == nil || !strings.Contains(err.Error(), "web.json is missing") {
		t.Errorf("a file that is gone: %v", err)
	}
}
