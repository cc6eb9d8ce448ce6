package spool

import (
	"testing"
	"testing/synctest"
	"time"
)

// Spools in which nothing lives do not keep others from the space, however many there are.
func TestWhatIsConfirmedInManySpoolsDoesNotFillTheirSpace(t *testing.T) {
	space := NewSpace(32_000, 0, nil)
	var last *running
	for range 20 {
		last = start(t, newMemory(), Config{}, space)
		last.add(frame(0, 1, 1, 1700))
		last.Advance(0, 1, 0)
	}
	if space.Used() < 32_000 {
		t.Fatalf("%d bytes are no test", space.Used())
	}
	wait(t, "there is room", func() bool { return last.Room() == nil })
}

// Nor do their files stay for ever.
func TestAnIdleSpoolGivesItsFileBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := newMemory()
		s := start(t, files, Config{}, nil)
		s.add(frame(0, 1, 1, 1700))
		<-time.After(3 * unneeded)
		if n := len(files.names("0")); n != 1 {
			t.Errorf("%d segments, and one is needed", n)
		}
		s.Advance(0, 1, 0)
		<-time.After(2 * unneeded)
		if n := len(files.names("0")); n != 0 {
			t.Errorf("%d segments, and none is needed", n)
		}
		s.add(frame(0, 2, 1, 1700))
		if got := all(t, s.Spool, 0); len(got) != 1 {
			t.Errorf("%d frames", len(got))
		}
		_ = s.stop()
	})
}
