package spool

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/logfolder"
)

var rewrite = flag.Bool("golden", false, "write the golden spool of this format again")

const golden = "testdata/golden-1"

func goldenFrames() (want []Frame) {
	for i := range uint64(5) {
		want = append(want, frame(2, 10*i+1, 10, int(i)*100))
	}
	return want
}

// A spool that was written by the first release is read by every later one.
func TestGoldenSpool(t *testing.T) {
	want := goldenFrames()
	if *rewrite {
		if err := os.RemoveAll(golden); err != nil {
			t.Fatal(err)
		}
		files, err := logfolder.Make(golden)
		if err != nil {
			t.Fatal(err)
		}
		s := start(t, files, Config{}, nil)
		s.add(want...)
		s.Advance(2, 20, 0)
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(golden)); err != nil {
		t.Fatal(err)
	}
	files, err := logfolder.Make(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := Examine(files, nil, func(d Damage) error { return fmt.Errorf("damaged: %v", d) }); err != nil {
		t.Fatal(err)
	}
	s := start(t, files, Config{}, nil)
	same(t, all(t, s.Spool, 2), want[2:])
	s.Advance(2, 50, 0)
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*.seg"))
	if err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestAFolderOfTheSystem(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	files, err := logfolder.Make(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, files, Config{SegmentBytes: 2000}, nil)
	var want []Frame
	for i := range uint64(20) {
		f := frame(0, i+1, 1, 300)
		want = append(want, f)
		s.add(f)
	}
	same(t, all(t, s.Spool, 0), want)
	s.Advance(0, 15, 0)
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	s = start(t, files, Config{}, nil)
	same(t, all(t, s.Spool, 0), want[15:])
	if _, err := files.Open("quarantine/x", true); err != nil {
		t.Error(err)
	}
	if err := files.Remove("not there"); err != nil {
		t.Error(err)
	}
}

// BenchmarkAppend is what the spool costs for a frame of 40 KiB, 16 in a group, with the system's sync.
func BenchmarkAppend(b *testing.B) {
	files, err := logfolder.Make(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	s := start(b, files, Config{}, nil)
	const size = 40 << 10
	b.SetBytes(16 * size)
	b.ReportAllocs()
	payload := make([]byte, size)
	entries := make([]Entry, 16)
	var wait sync.WaitGroup
	number := uint64(1)
	for b.Loop() {
		wait.Add(len(entries))
		for p := range entries {
			entries[p] = Entry{Frame: Frame{Partition: int32(p), First: number, Events: 500, Codec: "zstd", Payload: payload}, Waited: true, Done: wait.Done}
			s.Append(&entries[p])
		}
		wait.Wait()
		for p := range entries {
			s.Advance(int32(p), number+499, 0)
		}
		number += 500
	}
}

// TestRecoveryOfOneGiB is measured on demand: HEADGATE_SPOOL_GIB=1.
func TestRecoveryOfOneGiB(t *testing.T) {
	if os.Getenv("HEADGATE_SPOOL_GIB") == "" {
		t.Skip("set HEADGATE_SPOOL_GIB=1 to measure the recovery of a spool of 1 GiB")
	}
	for _, size := range []int{400, 4 << 10, 64 << 10} {
		dir := t.TempDir()
		write(t, dir, size)
		files, err := logfolder.Make(dir)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		s, err := New(Config{}, Deps{Files: files})
		if err != nil {
			t.Fatal(err)
		}
		opened := time.Now()
		s.Recent(time.Time{}, 100_000, func(g *Glance) bool { _, err := g.Head(4 << 10); return err == nil })
		t.Logf("frames of %d bytes: %d in %v, the newest 100,000 looked at in %v", size, s.Stats().Frames,
			opened.Sub(began).Round(time.Millisecond), time.Since(opened).Round(time.Millisecond))
	}
}

// write makes a spool of 1 GiB without the syncs.
func write(t *testing.T, dir string, size int) {
	t.Helper()
	number, segment := uint64(1), uint64(0)
	for total := 0; total < 1<<30; {
		segment++
		f, err := os.Create(filepath.Join(dir, segmentName(segment, 1)))
		if err != nil {
			t.Fatal(err)
		}
		var buf []byte
		for len(buf) < defaultSegment {
			fr := Frame{Partition: int32(number % 16), First: number, Events: 1, Codec: "zstd", Payload: []byte(strings.Repeat("x", size))}
			buf = appendRecord(buf, &fr, 1, time.Now())
			number++
		}
		if _, err := io.Copy(f, strings.NewReader(string(buf))); err != nil {
			t.Fatal(err)
		}
		total += len(buf)
		f.Close()
	}
}
