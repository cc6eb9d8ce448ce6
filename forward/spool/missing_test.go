package spool

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/internal/logfolder"
)

// threeFiles returns a folder with a spool of at least three segments, in order, of whose 40 events none is confirmed.
func threeFiles(t *testing.T) (dir string, segments []string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "web")
	files, err := logfolder.Make(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, files, Config{SegmentBytes: 1000}, nil)
	for i := range uint64(20) {
		s.add(frame(int32(i%2), i/2*2+1, 2, 200))
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	return dir, segmentsIn(t, dir)
}

func segmentsIn(t *testing.T, dir string) (all []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*.seg"))
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all, cmp.Compare)
	return all
}

// F07, F03: what is removed, cut off or overwritten while no gateway runs is counted, by verify and at the start, and at the
// next start it is known.
func TestF07WhatIsMissingIsCounted(t *testing.T) {
	for what, do := range map[string]func(path string) error{
		"removed": os.Remove,
		"empty":   func(path string) error { return os.Truncate(path, 0) },
		"cut":     func(path string) error { return os.Truncate(path, 300) },
		"zeroed":  func(path string) error { return os.WriteFile(path, make([]byte, 1100), 0o600) },
	} {
		for at := range 3 {
			dir, segments := threeFiles(t)
			if len(segments) < 3 {
				t.Fatal(segments)
			}
			if at == 2 {
				at = len(segments) - 1
			}
			if err := do(segments[at]); err != nil {
				t.Fatal(err)
			}
			files, err := logfolder.Make(dir)
			if err != nil {
				t.Fatal(err)
			}
			verified := 0
			if err := Examine(files, nil, func(d Damage) error {
				if d.Missing != nil {
					verified += int(d.Missing.Events)
					if (what == "removed") == (d.Segment == "none") {
						t.Errorf("%s %d: %v", what, at, d)
					}
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			s, err := New(Config{}, Deps{Files: files})
			if err != nil {
				t.Fatal(err)
			}
			left, lost := len(all(t, s, 0))*2+len(all(t, s, 1))*2, int(s.Stats().Missing)
			if lost == 0 || left+lost != 40 || verified != lost || int(s.Backlog(0).Lost+s.Backlog(1).Lost) != lost {
				t.Errorf("%s %d: %d events are left of 40, %d counted as lost, %d by verify", what, at, left, lost, verified)
			}
			if b := s.Backlog(0); b.Highest != 20 {
				t.Errorf("%s %d: numbers would be given again: %+v", what, at, b)
			}
			again, err := New(Config{}, Deps{Files: files})
			if err != nil || again.Stats().Missing != 0 {
				t.Errorf("%s %d: counted twice: %+v, %v", what, at, again.Stats(), err)
			}
			if notes, _ := filepath.Glob(filepath.Join(dir, "quarantine", "missing-*")); len(notes) != 1 {
				t.Errorf("%s %d: %v", what, at, notes)
			}
		}
	}
}

// F07: a missing file with nothing but confirmed frames is no loss, nor is a write that a crash cut off.
func TestF07WhatIsConfirmedIsNotMissed(t *testing.T) {
	dir, segments := threeFiles(t)
	files, err := logfolder.Make(dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{}, Deps{Files: files})
	if err != nil {
		t.Fatal(err)
	}
	s.Advance(0, 12, 0) // and the segments stay: it does not run
	s.Advance(1, 12, 0)
	last := segments[len(segments)-1]
	content, err := os.ReadFile(last)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(last, append(content, content[:100]...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(segments[0]); err != nil {
		t.Fatal(err)
	}
	again, err := New(Config{}, Deps{Files: files})
	if err != nil {
		t.Fatal(err)
	}
	if st := again.Stats(); st.Missing != 0 || st.Torn != 100 || st.Events != 16 {
		t.Errorf("%+v", st)
	}
}

// F14: files that are removed while they are in use, or the whole folder, are made again with all that they held.
func TestF14RemovedWhileInUse(t *testing.T) {
	for _, what := range []string{"*.seg", "0000000000000001-*", "cursor", ""} {
		dir := filepath.Join(t.TempDir(), "web")
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
		s.Advance(0, 3, 0)
		gone := []string{dir}
		if what != "" {
			if gone, err = filepath.Glob(filepath.Join(dir, what)); err != nil || len(gone) == 0 {
				t.Fatal(gone, err)
			}
		}
		for _, path := range gone {
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
		}
		s.Check()
		want = append(want, frame(0, 41, 2, 200), frame(0, 43, 2, 200))
		s.add(want[20]) // may go into the file that is gone, which it is then written to again
		s.Check()
		s.add(want[21])
		same(t, all(t, s.Spool, 0), want[1:])
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
		again, err := New(Config{}, Deps{Files: files})
		if err != nil {
			t.Fatal(err)
		}
		same(t, all(t, again, 0), want[1:])
		if st := again.Stats(); st.Missing != 0 || st.Damaged != 0 {
			t.Errorf("%q: %+v", what, st)
		}
		if removed := s.Stats().Removed; (removed > 0) != strings.HasSuffix(what+".seg", "") && what != "cursor" {
			t.Errorf("%q: %d files were noticed", what, removed)
		}
	}
}

// Both the count and the numbers bound what is missing; a gap in the numbers alone is no loss.
func TestF07TheGapBoundsWhatIsMissing(t *testing.T) {
	l := place{confirmed: 2, written: 30, events: 30}
	m, ok := l.missing(0, 20, []ref{{first: 3, events: 8}, {first: 21, events: 10}})
	if want := [][2]uint64{{11, 20}}; !ok || m.Events != 10 || !slices.Equal(m.Numbers, want) {
		t.Errorf("%v %v, want 10 events of %v", m, ok, want)
	}
	if m, ok := l.missing(0, 26, []ref{{first: 3, events: 8}, {first: 21, events: 10}}); !ok || m.Events != 4 {
		t.Errorf("%v %v, want 4 events", m, ok)
	}
	if m, ok := l.missing(0, 30, []ref{{first: 3, events: 8}, {first: 21, events: 10}}); ok {
		t.Errorf("%v", m)
	}
}
