package journal

import (
	"bytes"
	"context"
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/headgate-io/headgate/internal/memdisk"
)

// owner holds a set of numbers and has it kept: a record is a number to be put in, or with a bit set to be taken out.
type owner struct {
	holds map[uint32]bool
	wide  int // bytes of a record
	*Journal
	whole bool
}

const out = 1 << 31

func open(t rapid.TB, files *memdisk.Memory, wide int) *owner {
	t.Helper()
	o := &owner{holds: map[uint32]bool{}, wide: wide}
	j, whole, err := Open(Deps{Files: files, Snapshot: o.snapshot}, func(record []byte) {
		if n := binary.LittleEndian.Uint32(record); n&out == 0 {
			o.holds[n] = true
		} else {
			delete(o.holds, n&^out)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	o.Journal, o.whole = j, whole
	return o
}

func (o *owner) record(n uint32) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, n), bytes.Repeat([]byte{byte(n)}, o.wide)...)
}

func (o *owner) snapshot(emit func([]byte) error) error {
	for n := range o.holds {
		if err := emit(o.record(n)); err != nil {
			return err
		}
	}
	return nil
}

func (o *owner) put(n uint32) {
	o.holds[n] = true
	o.Append(o.record(n))
}

func (o *owner) take(n uint32) {
	delete(o.holds, n)
	o.Append(o.record(n | out))
}

// state is what a crash must leave of a journal, and what it may leave: nothing else.
type state struct{ must, may map[uint32]bool }

func (s *state) put(n uint32)  { s.may[n] = true }
func (s *state) take(n uint32) { delete(s.must, n) }

// good says that exactly this is there.
func (s *state) good(holds map[uint32]bool) { s.must, s.may = maps.Clone(holds), maps.Clone(holds) }

// F01, F02, F05, M03: records are put in, some taken back, flushed, synced and replaced by snapshots on a disk that may fail
// at any operation. Then the process is killed, which what was flushed survives, exactly, unless the disk had refused it; or
// the power is cut, which what was synced survives. Nothing is ever found that was not put in, or that was taken back since.
func TestM03EveryCrashOfTheLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		files, next, kept := memdisk.New(), uint32(0), state{}
		for range rapid.IntRange(1, 5).Draw(t, "lives") {
			o := open(t, files, rapid.SampledFrom([]int{0, 300, 40_000}).Draw(t, "wide"))
			for n := range o.holds {
				if !kept.may[n] {
					t.Fatalf("%d is there, which was never put in or was taken back", n)
				}
			}
			for n := range kept.must {
				if !o.holds[n] {
					t.Fatalf("%d is lost", n)
				}
			}
			kill, cut := o.live(t, files, &next, kept)
			if rapid.Bool().Draw(t, "power cut") {
				random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "crash"), 1))
				files, kept = files.PowerCut(random.IntN), cut
			} else {
				files, kept = files.Kill(), kill
			}
		}
	})
}

// live is one process on a disk with that much on it. It returns what a kill leaves, and what a power cut.
func (o *owner) live(t *rapid.T, files *memdisk.Memory, next *uint32, before state) (kill, cut state) {
	kill, cut = state{map[uint32]bool{}, maps.Clone(before.may)}, state{map[uint32]bool{}, maps.Clone(before.may)}
	if cut.may == nil {
		kill.may, cut.may = map[uint32]bool{}, map[uint32]bool{}
	}
	maps.Copy(kill.must, o.holds) // a restart writes nothing again
	maps.Copy(cut.must, o.holds)
	left, flaky := rapid.IntRange(0, 80).Draw(t, "operations"), rapid.SampledFrom([]int{0, 0, 4, 7}).Draw(t, "flaky")
	files.Fail(func(op int) error {
		if left--; left < 0 || flaky > 0 && op%flaky == 0 {
			return memdisk.ErrDisk
		}
		return nil
	})
	for range rapid.IntRange(1, 40).Draw(t, "steps") {
		switch rapid.IntRange(0, 5).Draw(t, "step") {
		case 0, 1, 2:
			*next++
			o.put(*next)
			kill.put(*next)
			cut.put(*next)
		case 3:
			if n := rapid.Uint32Range(0, *next).Draw(t, "taken"); o.holds[n] {
				o.take(n)
				kill.take(n)
				cut.take(n)
			}
		case 4:
			if o.Flush(); !o.gap {
				kill.good(o.holds)
			}
		case 5:
			if o.step() == nil && !o.gap {
				kill.good(o.holds)
				cut.good(o.holds)
			}
		}
	}
	return kill, cut
}

// A log that has become long is replaced by what is held, again and again; what is on the disk stays within bounds.
func TestM06TheLogStaysShort(t *testing.T) {
	files := memdisk.New()
	o := open(t, files, 1000)
	for n := range uint32(20_000) {
		o.put(n)
		if n >= 500 {
			o.take(n - 500)
		}
		if n%50 == 0 {
			if err := o.step(); err != nil {
				t.Fatal(err)
			}
		}
		if most := int64(2*(501*1016) + slack + 2*mostBuf); o.Stats().Bytes > most {
			t.Fatalf("%d bytes, more than %d", o.Stats().Bytes, most)
		}
	}
	if err := o.close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, files, 1000)
	if !again.whole || !maps.Equal(again.holds, o.holds) || again.Stats().Bytes != o.Stats().Bytes {
		t.Errorf("%v, %d held, want %d; %d bytes, want %d", again.whole, len(again.holds), len(o.holds), again.Stats().Bytes, o.Stats().Bytes)
	}
}

// Many starts leave few files.
func TestManyStartsLeaveFewFiles(t *testing.T) {
	files := memdisk.New()
	for n := range uint32(50) {
		o := open(t, files, 0)
		o.put(n)
		if err := o.close(); err != nil {
			t.Fatal(err)
		}
	}
	if o := open(t, files, 0); len(o.holds) != 50 || len(files.Names("")) > mostFiles+2 {
		t.Errorf("%d held in %d files", len(o.holds), len(files.Names("")))
	}
}

// written returns a log with so many records, and what is in its file.
func written(t testing.TB, records int) (name string, content []byte) {
	t.Helper()
	files := memdisk.New()
	o := open(t, files, 24)
	for n := range uint32(records) {
		o.put(n)
	}
	if err := o.close(); err != nil {
		t.Fatal(err)
	}
	name = files.Names(kindLog)[0]
	return name, files.Content(name)
}

// F03: a log that is cut off anywhere has all records before the cut, and no damage.
func TestF3LogTruncatedAtEveryByte(t *testing.T) {
	name, content := written(t, 20)
	record := len(content) / 20
	for n := range content {
		files := memdisk.New()
		files.Put(name, content[:n])
		o := open(t, files, 24)
		if len(o.holds) != n/record || !o.whole || o.Stats().Damaged != 0 {
			t.Fatalf("cut at %d: %d held, want %d; whole %v", n, len(o.holds), n/record, o.whole)
		}
	}
}

// F04, M11: any bit of a log may flip. One record is lost, never a wrong one found; it is set aside once, and the log is
// sound again as soon as it has been replaced.
func TestF4EveryBitOfALogFlipped(t *testing.T) {
	name, content := written(t, 8)
	for bit := range len(content) * 8 {
		flipped := bytes.Clone(content)
		flipped[bit/8] ^= 1 << (bit % 8)
		files := memdisk.New()
		files.Put(name, flipped)
		o := open(t, files, 24)
		last := bit/8 >= len(content)/8*7 // as if cut off
		if len(o.holds) != 7 || o.whole != last || len(files.Names("quarantine")) != map[bool]int{true: 0, false: 1}[last] {
			t.Fatalf("bit %d: %d held, whole %v, set aside %v", bit, len(o.holds), o.whole, files.Names("quarantine"))
		}
		for n := range o.holds {
			if n >= 8 {
				t.Fatalf("bit %d: %d was never put in", bit, n)
			}
		}
		if err := o.close(); err != nil {
			t.Fatal(err)
		}
		if again := open(t, files, 24); !again.whole || len(again.holds) != 7 || again.Stats().Damaged != 0 {
			t.Fatalf("bit %d, after that: %d held, whole %v", bit, len(again.holds), again.whole)
		}
	}
}

// What Run does by itself: it syncs what was appended, and goes on when the disk takes it again, with all that was missed.
func TestRunSyncsAndHeals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := memdisk.New()
		o := open(t, files, 0)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- o.Run(ctx) }()
		o.put(1)
		<-time.After(2 * pace)
		if got := open(t, files.PowerCut(func(int) int { return 2 }), 0); !got.holds[1] {
			t.Error("nothing was synced")
		}
		files.Fail(func(int) error { return memdisk.ErrDisk })
		o.put(2)
		o.Flush()
		<-time.After(time.Minute)
		if got := open(t, files.Kill(), 0); got.holds[2] || !got.holds[1] {
			t.Errorf("a disk that took nothing has %v", got.holds)
		}
		files.Fail(nil)
		<-time.After(mostPause)
		if got := open(t, files.PowerCut(func(int) int { return 2 }), 0); !got.holds[2] || !got.holds[1] || o.Stats().Failed == 0 {
			t.Errorf("after the disk took it again: %v, %+v", got.holds, o.Stats())
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// FuzzLog: whatever is in a file, opening it succeeds.
func FuzzLog(f *testing.F) {
	const salt = 0x1234abcd
	one := appendRecord(nil, []byte("\x01\x00\x00\x00"), salt)
	f.Add(one)
	f.Add(append(bytes.Clone(one), one[:9]...))
	f.Add(append([]byte("\xf5HGJ noise"), one...))
	f.Add(bytes.Repeat(marker[:], 9))
	f.Fuzz(func(t *testing.T, content []byte) {
		files := memdisk.New()
		files.Put(fileName(1, salt, kindLog), content)
		records := 0
		if _, _, err := Open(Deps{Files: files}, func(record []byte) { records += headerSize + len(record) }); err != nil || records > len(content) {
			t.Fatal(records, err)
		}
	})
}
