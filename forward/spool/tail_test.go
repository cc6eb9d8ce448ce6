package spool

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// again returns what can be read again of a partition, behind a number.
func again(t testing.TB, s *Spool, partition int32, after uint64) (frames []Frame) {
	t.Helper()
	for {
		var f Frame
		ok, err := s.Again(partition, after, &f)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return frames
		}
		frames, after = append(frames, f), f.Last()
	}
}

// N02, F13: what is confirmed is kept for a while, also when the backend was faster than the disk and over a restart, and can be
// read again, in order, with what is not confirmed behind it.
func TestN02ATailIsKept(t *testing.T) {
	files := newMemory()
	cfg := Config{SegmentBytes: 1000, TailBytes: 1 << 20, TailAge: time.Hour, Linger: time.Millisecond}
	s := start(t, files, cfg, nil)
	var want []Frame
	for i := range uint64(10) {
		f := frame(0, i*2+1, 2, 200)
		want = append(want, f)
		if i%2 == 0 {
			s.add(f)
			s.Advance(0, f.Last(), 0)
			continue
		}
		done := make(chan struct{})
		s.Append(&Entry{Frame: f, Done: func() { close(done) }})
		s.Advance(0, f.Last(), 0) // perhaps before it was written
		<-done
	}
	s.add(frame(0, 21, 2, 200))
	want = append(want, frame(0, 21, 2, 200))
	same(t, again(t, s.Spool, 0, 0), want)
	same(t, again(t, s.Spool, 0, 8), want[4:])
	same(t, again(t, s.Spool, 0, 7), want[3:]) // ends behind 7
	same(t, all(t, s.Spool, 0), want[10:])
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	s = start(t, files, cfg, nil)
	same(t, again(t, s.Spool, 0, 0), want)
	same(t, all(t, s.Spool, 0), want[10:])
	if st := s.Stats(); st.Events != 2 || st.Missing != 0 {
		t.Errorf("%+v", st)
	}
	_ = s.stop()
	s = start(t, files, Config{}, nil) // without one
	s.Check()
	s.add(frame(1, 1, 1, 10))
	s.add(frame(1, 2, 1, 10)) // Run has tidied up by then
	if n := len(again(t, s.Spool, 0, 0)); n > 2 {
		t.Errorf("%d frames of a tail that is off", n)
	}
}

// F19: a backend that confirms a frame before it is handed over, or while it waits to be written, may lose it all the same.
func TestF19ATailHasWhatWasConfirmedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, newMemory(), Config{TailBytes: 1 << 20, TailAge: time.Hour, Linger: time.Second}, nil)
		early, waiting, open := frame(0, 1, 2, 200), frame(0, 3, 2, 300), frame(0, 5, 2, 100)
		s.Advance(0, early.Last(), 0)
		s.add(early)
		written := make(chan struct{}, 2)
		for _, f := range []Frame{waiting, open} {
			s.Append(&Entry{Frame: f, Done: func() { written <- struct{}{} }})
		}
		s.Advance(0, waiting.Last(), 0)
		want := []Frame{early, waiting, open}
		same(t, again(t, s.Spool, 0, 0), want)
		if len(written) > 0 {
			t.Error("it was written before its time")
		}
		<-written
		<-written
		same(t, again(t, s.Spool, 0, 0), want)
		if l := &s.lanes[0]; len(l.tail) != 2 || len(l.refs) != 1 || len(l.writing) != 0 {
			t.Errorf("%d frames of a tail, %d that are not confirmed, %d that are being written", len(l.tail), len(l.refs), len(l.writing))
		}
		_ = s.stop()
	})
}

// F19: while the disk takes nothing, what it should have is read from memory, until the backend confirms it: then it is not written any more.
func TestF19WhatADiskDoesNotTakeIsReadFromMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fails atomic.Bool
		fails.Store(true)
		s := start(t, failingSyncs{newMemory(), fails.Load}, Config{TailBytes: 1 << 20, TailAge: time.Hour}, nil)
		var frames []Frame
		done := make(chan uint64, 3)
		for i := range uint64(3) {
			f := frame(0, 2*i+1, 2, 200)
			frames = append(frames, f)
			s.Append(&Entry{Frame: f, Waited: true, Done: func() { done <- f.First }})
		}
		synctest.Wait() // the first write has failed
		same(t, again(t, s.Spool, 0, 0), frames)
		s.Advance(0, frames[0].Last(), 0)
		if first := <-done; first != frames[0].First {
			t.Errorf("%d is done, and %d is confirmed", first, frames[0].First)
		}
		same(t, again(t, s.Spool, 0, 0), frames[1:])
		if len(done) > 0 {
			t.Error("what is nowhere is done")
		}
		fails.Store(false)
		<-done
		<-done
		same(t, again(t, s.Spool, 0, 0), frames[1:])
		if l := &s.lanes[0]; len(l.refs) != 2 || len(l.writing) != 0 {
			t.Errorf("%d frames are written, %d are being written", len(l.refs), len(l.writing))
		}
		_ = s.stop()
	})
}

// A tail is bounded, by size and age, and gives way to what is not confirmed: new work is refused only when it has gone.
func TestATailGoesFirst(t *testing.T) {
	fill := func(s *running, n uint64) {
		for i := range n {
			s.add(frame(0, i+1, 1, 400))
			s.Advance(0, i+1, 0)
		}
		s.Check()
		s.add(frame(1, n, 1, 10))
		s.add(frame(1, n+1, 1, 10))
	}
	cfg := Config{SegmentBytes: 1000, TailBytes: 5000, TailAge: time.Hour}
	s := start(t, newMemory(), cfg, nil)
	fill(s, 100)
	if st := s.Stats(); st.Tail > 6500 || st.Tail < 3000 || len(again(t, s.Spool, 0, 0)) < 6 {
		t.Errorf("a tail of 5000 bytes: %+v", st)
	}
	cfg.TailBytes, cfg.TailAge = 1<<20, time.Nanosecond
	s = start(t, newMemory(), cfg, nil)
	fill(s, 50)
	if st := s.Stats(); st.Tail > 3000 {
		t.Errorf("a tail of no age: %+v", st)
	}
	cfg.TailAge = time.Hour
	space := NewSpace(20_000, 0, nil)
	s = start(t, newMemory(), cfg, space)
	for i := range uint64(100) {
		if err := s.Room(); err != nil {
			t.Fatalf("frame %d: %v", i, err)
		}
		s.add(frame(0, i+1, 1, 400))
		s.Advance(0, i+1, 0)
	}
	for i := range uint64(100) {
		if err := s.Room(); err != nil {
			if !strings.Contains(err.Error(), "half of spool.max_bytes") || i < 15 {
				t.Errorf("full after %d frames: %v", i, err)
			}
			break
		}
		s.add(frame(0, i+101, 1, 400))
	}
	if used := space.Used(); used > 13_000 {
		t.Errorf("%d bytes are used of 10000", used)
	}
}
