package spool

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate-io/headgate/internal/memdisk"
)

// failingSyncs is a folder in which syncs of segments fail as the test says.
type failingSyncs struct {
	Files
	fails func() bool
}

func (f failingSyncs) Open(name string, create bool) (File, error) {
	file, err := f.Files.Open(name, create)
	if _, _, ok := parseSegmentName(name); !ok || err != nil {
		return file, err
	}
	return failingSync{file, f.fails}, nil
}

type failingSync struct {
	File
	fails func() bool
}

func (f failingSync) Sync() error {
	if f.fails() {
		return memdisk.ErrDisk
	}
	return f.File.Sync()
}

// killed is what a kill left: the files, and what had been acknowledged by then.
type killed struct {
	files     *memdisk.Memory
	acked     [3]map[uint64]bool
	confirmed [3]uint64
	noted     [3]uint64 // without the confirmation that was being noted
}

// F07, F01: the process is killed at any file operation, also one that follows failed syncs, and then a file is removed, cut off or
// emptied. No fewer events are named than are lost of what was acknowledged, no more than there can be, and none when no file was
// touched.
func TestF07ALaggingCursorHidesNoLoss(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		files, m := memdisk.New(), newModel()
		for life := range rapid.IntRange(1, 3).Draw(t, "lives") {
			k := m.killedLive(t, files, life)
			m.acked, m.confirmed = k.acked, k.confirmed
			damaged := k.damage(t)
			s, err := New(Config{SegmentBytes: 3000}, Deps{Files: k.files})
			if err != nil {
				t.Fatal(err)
			}
			lost, most := m.lost(t, s, &k.noted)
			switch named := int(s.Stats().Missing); {
			case damaged && (named < lost || named > most):
				t.Fatalf("%d events are named, %d acknowledged ones are lost, and %d might be", named, lost, most)
			case !damaged && named > 0:
				t.Fatalf("%d events are named, and nobody touched the files", named)
			case lost > 0 && !damaged:
				t.Fatalf("%d events are lost", lost)
			}
			for p := range m.next {
				m.next[p] = max(m.next[p], s.Backlog(int32(p)).Highest+1)
				m.confirmed[p], m.appended[p] = m.next[p]-1, nil // what is lost is not lost again
			}
			for p := range m.next {
				s.Advance(int32(p), m.confirmed[p], 0)
				s.note(int32(p), m.confirmed[p], 0) // though there was nothing to confirm
			}
			_ = (&writer{Spool: s}).end()
			files = k.files
		}
	})
}

// killedLive runs one process until it is killed.
func (m *model) killedLive(t *rapid.T, files *memdisk.Memory, life int) (k killed) {
	failing := rapid.SampledFrom([]int{0, 0, 3, 6}).Draw(t, "failing")
	syncs, budget := 0, rapid.IntRange(0, 80).Draw(t, "operations")
	before := m.confirmed
	image := func() {
		k = killed{files: files.Kill(), confirmed: m.confirmed, noted: before}
		for p := range m.acked {
			k.acked[p] = maps.Clone(m.acked[p])
		}
	}
	files.Fail(func(int) error {
		if budget--; budget == -1 {
			image()
		}
		return nil
	})
	s, err := New(Config{SegmentBytes: 3000, ahead: aheadIn(t)}, Deps{Files: failingSyncs{files, func() bool { syncs++; return failing > 0 && syncs%failing == 0 }}})
	if err != nil {
		t.Fatal(err)
	}
	w := &writer{Spool: s}
	for range rapid.IntRange(1, 40).Draw(t, "steps") {
		before = m.confirmed
		m.step(t, w, life)
	}
	before = m.confirmed
	if k.files == nil {
		files.Still(image)
	}
	files.Fail(nil)
	_ = w.end() // of what the kill has left nothing
	return k
}

// damage does something to one segment, or to none.
func (k *killed) damage(t *rapid.T) bool {
	segments := slices.Sorted(slices.Values(k.files.Names(".seg")))
	random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "damage"), 1))
	if len(segments) == 0 || random.IntN(4) == 0 {
		return false
	}
	name := segments[random.IntN(len(segments))]
	content := k.files.Content(name)
	switch random.IntN(3) {
	case 0:
		_ = k.files.Remove(name)
	case 1:
		k.files.Put(name, content[:random.IntN(len(content)+1)])
	case 2:
		k.files.Put(name, make([]byte, len(content)))
	}
	return true
}

// lost counts the events that were acknowledged, and those that were appended, that no backend is known to have and the spool has not.
func (m *model) lost(t *rapid.T, s *Spool, noted *[3]uint64) (acked, appended int) {
	for p := range m.appended {
		have := map[uint64]bool{}
		for after := uint64(0); ; {
			var f Frame
			ok, err := s.Next(int32(p), after, &f)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			have[f.First], after = true, f.Last()
		}
		for _, f := range m.appended[p] {
			if f.Last() <= noted[p] || have[f.First] {
				continue
			}
			appended += f.Events
			if f.Last() > m.confirmed[p] && m.acked[p][f.First] {
				acked += f.Events
			}
		}
	}
	return acked, appended
}

// A cursor of the version before, which does not say up to where it had counted, is read, and believed to lag.
func TestACursorWithoutEndsIsRead(t *testing.T) {
	le := binary.LittleEndian
	raw := append([]byte(nil), cursorMarker2[:]...)
	for _, n := range []uint64{7, 2, 5} { // write, oldest, newest
		raw = le.AppendUint64(raw, n)
	}
	raw = le.AppendUint32(raw, 1)
	for _, n := range []uint64{10, 20, 30, 40, 3} {
		raw = le.AppendUint64(raw, n)
	}
	raw = le.AppendUint32(raw, crc32.Checksum(raw, castagnoli))
	writes, l := readCursor(bytes.NewReader(raw), int64(len(raw)))
	if writes != 7 || l.oldest != 2 || l.newest != 5 || l.lanes[0] != (place{10, 20, 30, 40, 3}) || !l.lags(nil) || l.end(5) != math.MaxInt64 {
		t.Errorf("write %d: %+v", writes, l)
	}
}
