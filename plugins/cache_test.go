package plugins

import (
	"bytes"
	"context"
	"errors"
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

// A module whose compiled form is kept is loaded while another one is compiled, which may take half a minute.
func TestWhatIsCompiledWaitsForNobodysUpload(t *testing.T) {
	h := hostOf(t, Config{CacheDir: t.TempDir()})
	closed(t, loadOf(t, h, scripted(false).bytes()).Close())
	h.compile <- struct{}{} // somebody compiles
	m, err := h.Load(t.Context(), scripted(false).bytes())
	if err != nil {
		t.Fatal(err)
	}
	closed(t, m.Close())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Load(ctx, idle().bytes()); !errors.Is(err, context.Canceled) {
		t.Errorf("a module that is not compiled yet: %v", err)
	}
	<-h.compile
}

// One at a time works on a module.
func TestTurnsOfModules(t *testing.T) {
	var turns turns
	done, err := turns.take(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	other, err := turns.take(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	other()
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan error)
	go func() {
		_, err := turns.take(ctx, "a")
		got <- err
	}()
	cancel()
	if err := <-got; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	go func() {
		again, err := turns.take(context.Background(), "a")
		if err == nil {
			again()
		}
		got <- err
	}()
	done()
	if err := <-got; err != nil || len(turns.busy) != 0 {
		t.Errorf("%v %v", err, turns.busy)
	}
}
