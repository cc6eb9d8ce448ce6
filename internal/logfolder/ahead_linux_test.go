package logfolder

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A log that grows has space set aside behind its end; its size and content are what was written.
func TestALogHasSpaceAhead(t *testing.T) {
	dir := t.TempDir()
	files, err := Make(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := files.Open("a", true)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if !setsAside(t, filepath.Join(dir, "other")) {
		t.Skip("SKIPPED: the file system sets nothing aside")
	}
	const step, steps = 4 << 10, 100
	var most int64 // that was allocated behind the end
	for i := range int64(steps) {
		p := make([]byte, step)
		for j := range p {
			p[j] = byte(i)
		}
		if _, err := f.WriteAt(p, i*step); err != nil {
			t.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
		ahead := allocated(t, filepath.Join(dir, "log", "a")) - (i+1)*step
		most = max(most, ahead)
		if (i+1)*step <= smallLog && ahead >= smallLog {
			t.Fatalf("a file of %d bytes takes %d more", (i+1)*step, ahead)
		}
	}
	if most < smallLog || most > mostAhead+smallLog {
		t.Errorf("%d bytes were set aside", most)
	}
	all, err := os.ReadFile(filepath.Join(dir, "log", "a"))
	if err != nil || len(all) != step*steps {
		t.Fatalf("%d bytes, %v; want what was written, %d", len(all), err, step*steps)
	}
	for i, c := range all {
		if c != byte(i/step) {
			t.Fatalf("byte %d is %d", i, c)
		}
	}
}

// setsAside tells whether the file system sets space aside when it is asked, and shows it.
func setsAside(t *testing.T, path string) bool {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, mostAhead) == nil && allocated(t, path) >= mostAhead
}

// allocated is what a file takes of the disk.
func allocated(t *testing.T, path string) int64 {
	t.Helper()
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	return st.Blocks * 512
}
