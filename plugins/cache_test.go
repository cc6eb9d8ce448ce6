package plugins

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDamagedCacheIsMadeAnew(t *testing.T) {
	dir, wasm := t.TempDir(), scripted(false).bytes()
	load := func() string {
		closed(t, loadOf(t, hostOf(t, Config{CacheDir: dir}), wasm).Close())
		files, err := filepath.Glob(filepath.Join(dir, "*", "*", "*"))
		if err != nil || len(files) != 1 {
			t.Fatalf("files %v %v", files, err)
		}
		return files[0]
	}
	name := load()
	good, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(good); at += 1 + len(good)/40 {
		flipped := bytes.Clone(good)
		flipped[at] ^= 0xFF
		for _, bad := range [][]byte{good[:at], flipped} {
			if err := os.WriteFile(name, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			if again, err := os.ReadFile(load()); err != nil || len(again) != len(good) {
				t.Fatalf("damaged at %d: %v, %d bytes", at, err, len(again))
			}
		}
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

func TestCacheThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	h := hostOf(t, Config{CacheDir: file})
	h.log = slog.New(slog.NewTextHandler(&log, nil))
	for range 2 {
		loadOf(t, h, scripted(false).bytes())
	}
	if n := strings.Count(log.String(), "cache of compiled plugins failed"); n != 1 {
		t.Errorf("%d lines: %s", n, &log)
	}
}

// TestL21WhatADeletedVersionTookOfTheCacheIsFreed, while another version stays.
func TestL21WhatADeletedVersionTookOfTheCacheIsFreed(t *testing.T) {
	dir := t.TempDir()
	h := hostOf(t, Config{CacheDir: dir})
	gone, stays := loadOf(t, h, scripted(false).bytes()), loadOf(t, h, scripted(true).bytes())
	if n := len(h.Kept()); n != 2 {
		t.Fatalf("%d modules kept", n)
	}
	if err := h.Forget(gone.Digest); err != nil {
		t.Fatal(err)
	}
	if kept := h.Kept(); len(kept) != 1 || kept[0] != stays.Digest {
		t.Errorf("kept %v", kept)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 2 { // a folder and its sum
		t.Errorf("left %v", left)
	}
}

// A gateway that makes something else of a module than the one before does not run what that one compiled.
func TestCacheIsOfWhatIsCompiled(t *testing.T) {
	dir, wasm := t.TempDir(), scripted(false).bytes()
	h := hostOf(t, Config{CacheDir: dir})
	closed(t, loadOf(t, h, wasm).Close())
	metered, err := h.meter(wasm)
	if err != nil || bytes.Equal(metered, wasm) {
		t.Fatal("not metered", err)
	}
	kept := func(metered []byte) int {
		f, err := h.cacheOf(Digest(wasm), metered)
		if err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(f.path, "*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(files)
	}
	if n := kept(metered); n != 1 {
		t.Errorf("%d files for the same", n)
	}
	if n := kept(wasm); n != 0 {
		t.Errorf("%d files for what was metered otherwise", n)
	}
}
