package spool

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/logfolder"
)

// A lane can be confirmed up to the middle of a frame: the frame stays, and the next process knows how far it was.
func TestAFrameIsConfirmedPartly(t *testing.T) {
	files := newMemory()
	s := start(t, files, Config{}, nil)
	want := []Frame{frame(0, 1, 10, 100), frame(0, 11, 10, 100)}
	s.add(want...)
	s.Advance(0, 7, 0)
	s.Advance(0, 14, 0)
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	s = start(t, files, Config{}, nil)
	same(t, all(t, s.Spool, 0), want[1:])
	if b := s.Backlog(0); b.Confirmed != 14 || b.First != 11 || b.Events != 6 || b.Frames != 1 {
		t.Errorf("backlog %+v", b)
	}
	s.Advance(0, 20, 0)
	if st := s.Stats(); st.Frames != 0 || st.Events != 0 {
		t.Errorf("left %+v", st)
	}
}

// What is confirmed of a frame before it is written is known once it is.
func TestAFrameIsConfirmedPartlyBeforeItIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := newMemory()
		s := start(t, files, Config{Linger: time.Second}, nil)
		var done atomic.Int32
		s.Append(&Entry{Frame: frame(0, 1, 10, 100), Done: func() { done.Add(1) }})
		s.Advance(0, 4, 0)
		if err := s.stop(); err != nil || done.Load() != 1 {
			t.Fatal(err, done.Load())
		}
		again, err := New(Config{}, Deps{Files: files})
		if err != nil {
			t.Fatal(err)
		}
		if b := again.Backlog(0); b.Confirmed != 4 || b.Events != 6 {
			t.Errorf("backlog %+v", b)
		}
	})
}

// F11: nothing is durable in a file that nobody would find, or in a folder that is gone and cannot be made again.
func TestF11ARemovedFolderTakesNothing(t *testing.T) {
	top := filepath.Join(t.TempDir(), "top")
	dir := filepath.Join(top, "a")
	if err := os.Mkdir(top, 0o700); err != nil {
		t.Fatal(err)
	}
	files, err := logfolder.Make(dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{}, Deps{Files: files})
	if err != nil {
		t.Fatal(err)
	}
	w := &writer{Spool: s}
	put := func(f Frame) (safe bool) {
		s.Append(&Entry{Frame: f, Waited: true, Done: func() { safe = true }})
		w.gather(time.Now())
		w.commit()
		return safe
	}
	if !put(frame(0, 1, 1, 100)) {
		t.Fatal("the frame is not safe")
	}
	if err := os.RemoveAll(top); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(top, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for first := range uint64(3) {
		if put(frame(0, first+2, 1, 100)) {
			t.Errorf("frame %d is said to be safe", first+2)
		}
	}
	if p, ok := s.Room().(*event.Problem); !ok || p.Code != event.SpoolFull {
		t.Errorf("room: %v", s.Room())
	}
	if err := w.end(); err == nil {
		t.Error("the frames that are not written are not told of")
	}
}
