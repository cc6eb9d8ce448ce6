package spool

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/headgate-io/headgate/internal/logfolder"
)

// M10, F3: files of the spool are cut off, or filled with zeros, while it runs. What its owner still has in memory is written again, and
// no event of it is lost; what is nowhere any more is counted.
func TestM10WhatIsInMemoryIsWrittenAgain(t *testing.T) {
	for what, do := range map[string]func(path string) error{
		"cut off": func(path string) error { return os.Truncate(path, 100) },
		"zeros": func(path string) error {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			return os.WriteFile(path, make([]byte, info.Size()), 0o600)
		},
	} {
		t.Run(what, func(t *testing.T) { emptied(t, do) })
	}
}

func emptied(t *testing.T, do func(path string) error) {
	dir := t.TempDir()
	files, err := logfolder.Make(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, files, Config{SegmentBytes: 1000}, nil)
	var want []Frame
	for i := range uint64(20) {
		want = append(want, frame(0, i*2+1, 2, 200))
		s.add(want[i])
	}
	const spilled = 2 // of the frames: they are nowhere else
	asked := 0
	s.RecallFrom(func(partition int32, first uint64, f *Frame) bool {
		asked++
		if partition != 0 || first <= 2*spilled {
			return false
		}
		*f = frame(0, first, 2, 200)
		return true
	})
	segments, err := filepath.Glob(filepath.Join(dir, "*.seg"))
	if err != nil || len(segments) < 4 {
		t.Fatal(segments, err)
	}
	for _, path := range segments {
		if err := do(path); err != nil {
			t.Fatal(err)
		}
	}
	for next := uint64(41); s.Stats().Lost < 2*spilled || s.Stats().Copied < 20-spilled; next += 2 { // each is a turn of the writer
		if next > 4000 {
			t.Fatalf("it is not noticed: %+v", s.Stats())
		}
		s.Check()
		want = append(want, frame(0, next, 2, 200))
		s.add(want[len(want)-1])
	}
	same(t, all(t, s.Spool, 0), want[spilled:])
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	again, err := New(Config{}, Deps{Files: files})
	if err != nil {
		t.Fatal(err)
	}
	same(t, all(t, again, 0), want[spilled:])
	if lost := s.Stats().Lost; lost != 2*spilled || asked < 20 {
		t.Errorf("%d events are lost, want %d; asked for %d frames", lost, 2*spilled, asked)
	}
}
