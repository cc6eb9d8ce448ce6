package spool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/memdisk"
)

// running is a spool under test.
type running struct {
	*Spool
	t    testing.TB
	stop func() error
}

func start(t testing.TB, files Files, cfg Config, space *Space) *running {
	t.Helper()
	s, err := New(cfg, Deps{Files: files, Space: space})
	if err != nil {
		t.Fatal(err)
	}
	return run(t, s)
}

func run(t testing.TB, s *Spool) *running {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	r := &running{Spool: s, t: t}
	r.stop = sync.OnceValue(func() error { s.Close(); err := <-done; cancel(); return err })
	t.Cleanup(func() { cancel(); _ = r.stop() })
	return r
}

// frame makes a frame of one partition whose payload says which it is.
func frame(partition int32, first uint64, events, size int) Frame {
	text := fmt.Sprintf("%d/%d/%d|", partition, first, events)
	return Frame{
		Partition: partition, First: first, Events: events, Framing: 1, Codec: "zstd", TableVersion: 7,
		Payload: []byte(strings.Repeat(text, size/len(text)+1))[:max(size, len(text))],
	}
}

// add appends frames and waits until all are safe.
func (r *running) add(frames ...Frame) {
	r.t.Helper()
	var wait sync.WaitGroup
	for _, f := range frames {
		wait.Add(1)
		r.Append(&Entry{Frame: f, Waited: true, Done: wait.Done})
	}
	wait.Wait()
}

// all returns what the spool has of a partition.
func all(t testing.TB, s *Spool, partition int32) (frames []Frame) {
	t.Helper()
	after := uint64(0)
	for {
		var f Frame
		ok, err := s.Next(partition, after, &f)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return frames
		}
		if f.First <= after {
			t.Fatalf("partition %d: number %d after %d", partition, f.First, after)
		}
		frames, after = append(frames, f), f.Last()
	}
}

func same(t testing.TB, got, want []Frame) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d frames, want %d", len(got), len(want))
	}
	for i := range want {
		g, w := got[i], want[i]
		if !bytes.Equal(g.Payload, w.Payload) || g.First != w.First || g.Events != w.Events || g.Partition != w.Partition ||
			g.Framing != w.Framing || g.Codec != w.Codec || g.TableVersion != w.TableVersion {
			t.Fatalf("frame %d: %+v, want %+v", i, g, w)
		}
	}
}

func TestFramesComeOutAsTheyWentIn(t *testing.T) {
	files := newMemory()
	s := start(t, files, Config{SegmentBytes: 1000}, nil)
	var want [3][]Frame
	next := [3]uint64{1, 500, 1 << 40}
	for i := range 60 {
		p := i % 3
		f := frame(int32(p), next[p], i%7+1, i*11)
		next[p] += uint64(f.Events)
		want[p] = append(want[p], f)
		s.add(f)
	}
	for p := range want {
		same(t, all(t, s.Spool, int32(p)), want[p])
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	s = start(t, files, Config{SegmentBytes: 1000}, nil)
	for p := range want {
		same(t, all(t, s.Spool, int32(p)), want[p])
		if b := s.Backlog(int32(p)); b.Frames != 20 || b.First != want[p][0].First || b.Last != next[p]-1 || b.Highest != b.Last {
			t.Errorf("backlog %+v", b)
		}
	}
	s.Advance(1, want[1][9].Last(), 0)
	same(t, all(t, s.Spool, 1), want[1][10:])
	_ = s.stop()
	s = start(t, files, Config{SegmentBytes: 1000}, nil)
	same(t, all(t, s.Spool, 1), want[1][10:])
	for p := range want {
		s.Advance(int32(p), next[p], 0)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	if left := files.names("0"); len(left) > 0 {
		t.Errorf("segments left when all is confirmed: %v", left)
	}
	if st := s.Stats(); st.Frames != 0 || st.Events != 0 || st.Bytes != 0 {
		t.Errorf("stats %+v", st)
	}
}

// What the backend confirms while nobody waits for the disk is never written.
func TestConfirmedBeforeItIsWritten(t *testing.T) {
	files := newMemory()
	s := start(t, files, Config{Linger: time.Hour}, nil)
	done := make(chan struct{}, 2)
	s.Append(&Entry{Frame: frame(0, 1, 5, 100), Done: func() { done <- struct{}{} }})
	s.Advance(0, 5, 0)
	<-done
	s.Append(&Entry{Frame: frame(0, 3, 2, 100), Done: func() { done <- struct{}{} }}) // late
	<-done
	if st := s.Stats(); st.Written != 0 || st.Bytes != 0 {
		t.Errorf("written %+v", st)
	}
}

func TestAnUnwaitedFrameIsWrittenInTime(t *testing.T) {
	s := start(t, newMemory(), Config{Linger: time.Millisecond}, nil)
	done := make(chan struct{})
	s.Append(&Entry{Frame: frame(0, 1, 1, 10), Done: func() { close(done) }})
	<-done
	if st := s.Stats(); st.Written != 1 {
		t.Errorf("%+v", st)
	}
}

// What comes during a sync goes out with the next one.
func TestGroupCommit(t *testing.T) {
	files := newMemory()
	s, err := New(Config{}, Deps{Files: files})
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for i := range 100 {
		wait.Add(1)
		s.Append(&Entry{Frame: frame(int32(i%16), uint64(i+1), 1, 50), Waited: true, Done: wait.Done})
	}
	go func() { _ = s.Run(context.Background()) }()
	wait.Wait()
	s.Close()
	if st := s.Stats(); st.Groups != 1 || st.Written != 100 {
		t.Errorf("%d groups of %d frames, want 1 of 100", st.Groups, st.Written)
	}
}

func TestF08FullAndHealed(t *testing.T) {
	left := int64(1 << 30)
	space := NewSpace(10_000, 1000, func() (int64, error) { return left, nil })
	s := start(t, newMemory(), Config{SegmentBytes: 2000}, space)
	n := uint64(0)
	for s.Room() == nil && n < 100 {
		n++
		s.add(frame(0, n, 1, 500))
	}
	var p *event.Problem
	if err := s.Room(); !errors.As(err, &p) || p.Code != event.SpoolFull || n < 5 || n > 10 {
		t.Fatalf("after %d frames: %v", n, err)
	}
	s.add(frame(0, n+1, 1, 500)) // what was taken finds room
	s.Advance(0, n+1, 0)
	s.add(frame(0, n+2, 1, 10)) // an old file is removed before something is written
	s.add(frame(0, n+3, 1, 10))
	if err := s.Room(); err != nil {
		t.Fatalf("it has room again: %v", err)
	}
	left = 999
	space.checked.Store(0)
	if s.Room() == nil {
		t.Fatal("the reserve of the disk was not kept")
	}
}

// A small space is not filled by what is confirmed.
func TestWhatIsConfirmedDoesNotFillASmallSpace(t *testing.T) {
	s := start(t, newMemory(), Config{}, NewSpace(100_000, 0, nil))
	for n := range uint64(500) {
		s.add(frame(0, n+1, 1, 1000))
		s.Advance(0, n+1, 0)
		if err := s.Room(); err != nil {
			t.Fatalf("after %d frames: %v", n, err)
		}
	}
}

// Nor by a single group that is larger than the part of it that a stream may have.
func TestALargeGroupThatIsConfirmedDoesNotFillASmallSpace(t *testing.T) {
	s, err := New(Config{}, Deps{Files: newMemory(), Space: NewSpace(100_000, 0, nil)})
	if err != nil {
		t.Fatal(err)
	}
	var written sync.WaitGroup
	for n := range uint64(60) {
		written.Add(1)
		s.Append(&Entry{Frame: frame(0, n+1, 1, 1000), Waited: true, Done: written.Done})
	}
	over := make(chan error)
	go func() { over <- s.Run(t.Context()) }()
	written.Wait()
	if s.Room() == nil {
		t.Fatal("more than half of the space is taken, and there is room")
	}
	s.Advance(0, 60, 0)
	wait(t, "there is room again", func() bool { return s.Room() == nil && s.Stats().Bytes == 0 })
	s.Close()
	if err := <-over; err != nil {
		t.Fatal(err)
	}
}

// F5: after a failed sync everything goes to a new file, and only then is anything acknowledged.
func TestF5AFailedSyncPoisonsTheFile(t *testing.T) {
	for at := range 12 {
		files := newMemory()
		n := 0
		files.Fail(func(int) error {
			if n++; n == at+4 || n == at+5 {
				return memdisk.ErrDisk
			}
			return nil
		})
		s := start(t, files, Config{}, nil)
		var want []Frame
		for i := range 8 {
			f := frame(0, uint64(i+1), 1, 600)
			want = append(want, f)
			s.add(f)
		}
		files.Fail(func(int) error { return memdisk.ErrDisk }) // nothing more: what is there must be enough
		after := files.crash(func(int) int { return 2 })
		again, err := New(Config{}, Deps{Files: after})
		if err != nil {
			t.Fatal(err)
		}
		same(t, all(t, again, 0), want)
		if st := s.Stats(); st.Failed == 0 {
			t.Errorf("no failure at operation %d", at)
		}
		files.Fail(nil)
	}
}

// F08, F11: a disk that takes nothing refuses new work, and not for ever when the backend takes what there was.
func TestF11ADiskThatTookNothingIsTriedAgain(t *testing.T) {
	files := newMemory()
	files.Fail(func(int) error { return memdisk.ErrDisk })
	s := start(t, files, Config{}, nil)
	done := make(chan struct{})
	s.Append(&Entry{Frame: frame(0, 1, 1, 10), Waited: true, Done: func() { close(done) }})
	wait(t, "it is full", func() bool { return s.Room() != nil })
	s.Advance(0, 1, 0)
	<-done
	wait(t, "it takes more", func() bool { return s.Room() == nil })
	s.Append(&Entry{Frame: frame(0, 2, 1, 10), Waited: true, Done: func() {}})
	wait(t, "it is full again", func() bool { return s.Room() != nil })
	files.Fail(nil)
	wait(t, "it heals by itself", func() bool { return s.Room() == nil && s.Stats().Frames == 1 })
}

func wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// A lane that stands still does not keep the files of the others.
func TestSparseSegmentsAreCopiedForward(t *testing.T) {
	files := newMemory()
	s := start(t, files, Config{SegmentBytes: 10_000}, nil)
	slow := frame(1, 77, 3, 300)
	s.add(slow)
	for i := range uint64(300) {
		s.add(frame(0, i+1, 1, 500))
		s.Advance(0, i+1, 0)
	}
	st := s.Stats()
	if st.Copied == 0 || st.Bytes > 40_000 {
		t.Errorf("%+v", st)
	}
	same(t, all(t, s.Spool, 1), []Frame{slow})
	_ = s.stop()
	again, err := New(Config{}, Deps{Files: files})
	if err != nil {
		t.Fatal(err)
	}
	same(t, all(t, again, 1), []Frame{slow})
}

// F06, F07, M04: each file missing, the cursor of another time or none.
func TestM04TheCursorIsAHint(t *testing.T) {
	files := newMemory()
	s := start(t, files, Config{SegmentBytes: 1000}, nil)
	var want []Frame
	for i := range uint64(20) {
		f := frame(0, i*2+1, 2, 200)
		want = append(want, f)
		s.add(f)
	}
	old := files.copy().Content(cursorName)
	s.Advance(0, 20, 0)
	_ = s.stop()
	good := files.Content(cursorName)
	ahead := newMemory()
	c, err := openCursor(ahead, 0, false)
	if err != nil || c.set(0, 1000, 0) != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"behind": old, "empty": {}, "half": good[:len(good)/2-100], "ahead": ahead.Content(cursorName), "noise": bytes.Repeat([]byte{0xa5}, 8192),
	} {
		m := files.copy()
		m.Put(cursorName, content)
		again, err := New(Config{}, Deps{Files: m})
		if err != nil {
			t.Fatal(err)
		}
		got := all(t, again, 0)
		if len(got) < 10 {
			t.Errorf("%s: %d frames, at least 10 are not confirmed", name, len(got))
		}
		same(t, got, want[len(want)-len(got):])
	}
	for _, name := range files.Names("") {
		m := files.copy()
		_ = m.Remove(name)
		if _, err := New(Config{}, Deps{Files: m}); err != nil {
			t.Errorf("without %s: %v", name, err)
		}
	}
}
