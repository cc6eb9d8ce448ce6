package spool

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/headgate-io/headgate/internal/logfolder"
	"github.com/headgate-io/headgate/internal/memdisk"
)

// model is what a spool must have: the frames that were acknowledged and not confirmed, and may have: all others that
// were ever appended.
type model struct {
	appended  [3][]Frame
	acked     [3]map[uint64]bool
	confirmed [3]uint64 // as the spool was told
	next      [3]uint64
}

func newModel() *model {
	m := &model{}
	for p := range m.acked {
		m.acked[p], m.next[p] = map[uint64]bool{}, 1
	}
	return m
}

// check compares what a spool has after a restart.
func (m *model) check(t rapid.TB, s *Spool) {
	t.Helper()
	for p := range m.appended {
		known := map[uint64]Frame{}
		for _, f := range m.appended[p] {
			known[f.First] = f
		}
		after := uint64(0)
		have := map[uint64]bool{}
		for {
			var f Frame
			ok, err := s.Next(int32(p), after, &f)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			if w, ok := known[f.First]; !ok || !bytes.Equal(w.Payload, f.Payload) || w.Events != f.Events {
				t.Fatalf("partition %d: a frame %d that was never appended", p, f.First)
			}
			if f.First <= after {
				t.Fatalf("partition %d: %d after %d", p, f.First, after)
			}
			have[f.First], after = true, f.Last()
		}
		for _, f := range m.appended[p] {
			if m.acked[p][f.First] && f.Last() > m.confirmed[p] && !have[f.First] {
				t.Fatalf("partition %d: frame %d was acknowledged and is lost", p, f.First)
			}
		}
		if b := s.Backlog(int32(p)); b.Highest >= m.next[p] {
			t.Fatalf("partition %d: highest %d, appended up to %d", p, b.Highest, m.next[p]-1)
		}
	}
}

// M01, M03, F02, F06: a machine of appends, confirmations and restarts, with a power cut at any file operation, after
// which each sector that was not synced is there, missing or zero; and a failing or lying disk.
func TestM03EveryCrashIsSurvived(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		files, m := newMemory(), newModel()
		for life := range rapid.IntRange(1, 4).Draw(t, "lives") {
			live(t, files, m, life)
			random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "crash"), 1))
			files = files.crash(random.IntN)
			s, err := New(Config{SegmentBytes: 3000}, Deps{Files: files})
			if err != nil {
				t.Fatal(err)
			}
			m.check(t, s)
			for p := range m.next { // what a lane does: it goes on behind what is known
				m.next[p] = max(m.next[p], s.Backlog(int32(p)).Highest+1)
			}
		}
	})
}

// live runs one process until the power is cut.
func live(t *rapid.T, files *memory, m *model, life int) {
	budget := rapid.IntRange(0, 60).Draw(t, "operations")
	flaky := rapid.SampledFrom([]int{0, 0, 5, 9}).Draw(t, "flaky")
	files.Fail(func(op int) error {
		if budget--; budget < 0 || flaky > 0 && op%flaky == 0 {
			return memdisk.ErrDisk
		}
		return nil
	})
	s, err := New(Config{SegmentBytes: 3000, ahead: aheadIn(t)}, Deps{Files: files})
	if err != nil {
		return
	}
	w := &writer{Spool: s}
	for range rapid.IntRange(1, 40).Draw(t, "steps") {
		m.step(t, w, life)
	}
}

// step appends a frame, has frames written, or confirms some.
func (m *model) step(t *rapid.T, w *writer, life int) {
	switch rapid.IntRange(0, 5).Draw(t, "step") {
	case 0, 1, 2:
		p := rapid.IntRange(0, 2).Draw(t, "partition")
		f := frame(int32(p), m.next[p], rapid.IntRange(1, 9).Draw(t, "events"), rapid.IntRange(1, 1500).Draw(t, "size"))
		f.Payload = append(f.Payload, byte(life))
		m.next[p] += uint64(f.Events)
		m.appended[p] = append(m.appended[p], f)
		w.Append(&Entry{Frame: f, Waited: true, Done: func() { m.acked[p][f.First] = true }})
	case 3, 4:
		w.tidy()
		w.gather(time.Now())
		if len(w.group) > 0 {
			w.commit()
		}
	case 5:
		p := rapid.IntRange(0, 2).Draw(t, "confirmed")
		if all := m.appended[p]; len(all) > 0 { // whole frames, as far as a backend may be
			last := all[rapid.IntRange(0, len(all)-1).Draw(t, "frame")].Last()
			m.confirmed[p] = max(m.confirmed[p], last)
			w.Advance(int32(p), last, 0)
		}
	}
}

// segmentOf returns a spool with one segment of so many frames.
func segmentOf(t testing.TB, frames, size int) (files *memory, name string, want []Frame) {
	t.Helper()
	files = newMemory()
	s := start(t, files, Config{}, nil)
	for i := range frames {
		f := frame(0, uint64(3*i+1), 3, size)
		want = append(want, f)
		s.add(f)
	}
	_ = s.stop()
	return files, files.names("0")[0], want
}

// survivors opens a spool with that content in place of its segment, and checks that it has frames that were appended,
// unchanged and in order.
func survivors(t testing.TB, files *memory, name string, content []byte, want []Frame) (have int) {
	t.Helper()
	m := newMemory()
	m.Put(name, content)
	s, err := New(Config{}, Deps{Files: m})
	if err != nil {
		t.Fatal(err)
	}
	got := all(t, s, 0)
	for _, f := range got {
		i := int(f.First-1) / 3
		if i >= len(want) || !bytes.Equal(f.Payload, want[i].Payload) || f.First != want[i].First || f.Events != 3 {
			t.Fatalf("a frame that is none: %+v", f)
		}
	}
	if lost := len(want) - len(got); lost > 0 && len(m.names(logfolder.Quarantine)) == 0 && content != nil && s.stats.Torn+s.stats.DamagedSize > 0 {
		t.Fatal("damage was not set aside")
	}
	return len(got)
}

// thorough tells that the tests of make test-faults run, which have time.
func thorough() bool { return os.Getenv("FAULTS") != "" }

func TestF3TruncatedAtEveryByte(t *testing.T) {
	records, size := 16, 200
	if thorough() { // 64 KiB
		records, size = 64, 950
	}
	files, name, want := segmentOf(t, records, size)
	whole := files.Content(name)
	record := len(whole) / len(want)
	for n := range whole {
		if have := survivors(t, files, name, whole[:n], want); have != n/record {
			t.Fatalf("cut at %d: %d frames, want %d", n, have, n/record)
		}
	}
	t.Logf("%d cuts", len(whole))
}

func TestF4EveryBitFlipped(t *testing.T) {
	records := 12
	if thorough() { // 16 KiB
		records = 45
	}
	files, name, want := segmentOf(t, records, 300)
	whole := files.Content(name)
	var before, after runtime.MemStats
	for bit := range len(whole) * 8 {
		flipped := bytes.Clone(whole)
		flipped[bit/8] ^= 1 << (bit % 8)
		began := time.Now()
		if thorough() {
			runtime.ReadMemStats(&before)
		}
		if have := survivors(t, files, name, flipped, want); have != len(want)-1 {
			t.Fatalf("bit %d: %d frames of %d, want all but one", bit, have, len(want))
		}
		if !thorough() {
			continue
		}
		runtime.ReadMemStats(&after)
		if took, heap := time.Since(began), after.TotalAlloc-before.TotalAlloc; took > time.Second || heap > 64<<20 {
			t.Fatalf("bit %d: the start took %s and %d bytes of memory", bit, took, heap)
		}
	}
	t.Logf("%d flips", len(whole)*8)
}

// M09: damage in an old segment is set aside once and then written out of it; what is around it is delivered.
func TestM09DamageIsSetAsideOnce(t *testing.T) {
	files, name, want := segmentOf(t, 10, 400)
	record := len(files.Content(name)) / len(want)
	files.flip(name, 3*record+headerSize+7) // a payload
	files.flip(name, 6*record+20)           // a header
	s := start(t, files, Config{}, nil)
	rest := append(append(append([]Frame(nil), want[:3]...), want[4:6]...), want[7:]...)
	same(t, all(t, s.Spool, 0), rest)
	if n := len(files.names(logfolder.Quarantine + "/" + name)); n != 2 {
		t.Errorf("%d ranges in quarantine, want 2", n)
	}
	if n := len(files.names(logfolder.Quarantine + "/missing-")); n != 1 || s.Stats().Missing != 6 {
		t.Errorf("%d notes of what is lost, %+v", n, s.Stats())
	}
	if st := s.Stats(); st.Damaged != 2 || st.DamagedSize != int64(2*record) {
		t.Errorf("stats %+v", st)
	}
	s.add(frame(1, 1, 1, 10)) // the damaged segment has been rewritten by then
	same(t, all(t, s.Spool, 0), rest)
	_ = s.stop()
	if err := Examine(files, nil, func(d Damage) error { return fmt.Errorf("still damaged: %v", d) }); err != nil {
		t.Error(err)
	}
	again, err := New(Config{}, Deps{Files: files})
	if err != nil {
		t.Fatal(err)
	}
	same(t, all(t, again, 0), rest)
	if again.stats.Damaged != 0 {
		t.Errorf("found again: %+v", again.stats)
	}
}

func TestM05ExamineNamesSegmentAndOffset(t *testing.T) {
	files, name, want := segmentOf(t, 10, 400)
	record := len(files.Content(name)) / len(want)
	files.flip(name, 3*record+headerSize)
	var found []Damage
	frames := 0
	err := Examine(files, func(Record) error { frames++; return nil }, func(d Damage) error { found = append(found, d); return nil })
	if err != nil || frames != 9 || len(found) != 1 || found[0].Segment != name || found[0].Offset != int64(3*record) || found[0].First != 10 {
		t.Fatalf("%v, %d frames, %v", err, frames, found)
	}
	if text := found[0].String(); !strings.Contains(text, name) || !strings.Contains(text, fmt.Sprint("offset ", 3*record)) {
		t.Error(text)
	}
	repaired, err := Repair(files)
	if err != nil || len(repaired) != 1 {
		t.Fatal(repaired, err)
	}
	if err := Examine(files, nil, func(d Damage) error { return fmt.Errorf("after repair: %v", d) }); err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{}, Deps{Files: files})
	if err != nil {
		t.Fatal(err)
	}
	same(t, all(t, s, 0), append(append([]Frame(nil), want[:3]...), want[4:]...))
}

// A disk that lies about syncs loses what it will, and nothing is ever made of what is left.
func TestALyingDisk(t *testing.T) {
	files := newMemory()
	files.lies = true
	s := start(t, files, Config{SegmentBytes: 2000}, nil)
	m := newModel()
	for i := range 30 {
		f := frame(int32(i%3), m.next[i%3], 2, 300)
		m.next[i%3] += 2
		m.appended[i%3] = append(m.appended[i%3], f)
		s.add(f)
	}
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 2))
		again, err := New(Config{}, Deps{Files: files.crash(random.IntN)})
		if err != nil {
			t.Fatal(err)
		}
		m.check(t, again)
	}
}

// FuzzSegment: whatever a segment holds, opening succeeds, nothing that is not a whole record is delivered, and the
// memory that is taken has to do with the size of the file.
func FuzzSegment(f *testing.F) {
	const salt = 0x1234abcd
	fr := frame(3, 9, 2, 40)
	one := appendRecord(nil, &fr, salt, time.Unix(1, 0))
	f.Add(one)
	f.Add(append(bytes.Clone(one), one[:50]...))
	f.Add(append([]byte("\xf5HG1 noise"), one...))
	f.Add(bytes.Repeat(marker[:], 40))
	f.Fuzz(func(t *testing.T, content []byte) {
		m := newMemory()
		m.Put(segmentName(1, salt), content)
		s, err := New(Config{}, Deps{Files: m})
		if err != nil {
			t.Fatal(err)
		}
		for p := range int32(maxPartitions) {
			after := uint64(0)
			for {
				var f Frame
				ok, err := s.Next(p, after, &f)
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					break
				}
				if f.First <= after || f.check() != nil || len(f.Payload) > len(content) {
					t.Fatalf("%+v after %d", f, after)
				}
				after = f.First
			}
		}
		if err := Examine(m, func(Record) error { return nil }, func(Damage) error { return nil }); err != nil {
			t.Fatal(err)
		}
	})
}
