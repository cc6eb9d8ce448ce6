package spool

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/logfolder"
	"github.com/headgate-io/headgate/internal/race"
)

// BenchmarkOpen opens a spool of SPOOL_MIB (default 64) of frames of several sizes in 16 lanes, and tells how much processor time
// a GiB costs.
func BenchmarkOpen(b *testing.B) {
	mib, _ := strconv.Atoi(os.Getenv("SPOOL_MIB"))
	if mib == 0 {
		mib = 64
	}
	for _, size := range []int{400, 4000, 100_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			files, bytes := manyFrames(b, size, mib<<20)
			b.SetBytes(bytes)
			before := used()
			for b.Loop() {
				s, err := New(Config{}, Deps{Files: files})
				if err != nil {
					b.Fatal(err)
				}
				if err := (&writer{Spool: s}).end(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric((used()-before).Seconds()/float64(b.N)/(float64(bytes)/(1<<30)), "cpu-s/GiB")
		})
	}
}

// used is the processor time of this process.
func used() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // of oneself it does not fail
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// manyFrames makes the files of a spool of so many bytes.
func manyFrames(b testing.TB, size, total int) (files Files, bytes int64) {
	b.Helper()
	dir := filepath.Join(b.TempDir(), "web")
	files, err := logfolder.Make(dir)
	if err != nil {
		b.Fatal(err)
	}
	f := frame(0, 1, 1, size)
	for number := uint64(1); total > 0; number++ {
		var raw []byte
		for len(raw) < defaultSegment && total > 0 {
			n := len(raw)
			raw = appendRecord(raw, &f, 77, time.Unix(1, 0))
			total -= len(raw) - n
			if f.Partition = (f.Partition + 1) % 16; f.Partition == 0 {
				f.First++
			}
		}
		if err := os.WriteFile(filepath.Join(dir, segmentName(number, 77)), raw, 0o600); err != nil {
			b.Fatal(err)
		}
		bytes += int64(len(raw))
	}
	return files, bytes
}

// F01: what a start needs does not grow with the number of frames but for their place in the index.
func TestAStartAllocatesNothingForAFrame(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	allocated := func(frames int) float64 {
		files, _ := manyFrames(t, 40, frames*(headerSize+40))
		return testing.AllocsPerRun(1, func() {
			s, err := New(Config{}, Deps{Files: files})
			if err != nil || s.stats.Frames != frames {
				t.Fatal(s.stats, err)
			}
			if err := (&writer{Spool: s}).end(); err != nil {
				t.Fatal(err)
			}
		})
	}
	few, many := allocated(1000), allocated(41_000)
	if many > few+4000 {
		t.Errorf("%.0f allocations for 1000 frames, %.0f for 41,000", few, many)
	}
}
