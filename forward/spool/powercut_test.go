package spool

import (
	"bytes"
	"testing"
)

// M10: as it comes, the spool says that a frame is written when it is synced: with the power cut then, and nothing of what was not
// synced left, all of them are there.
func TestM10SyncedBeforeItIsDone(t *testing.T) {
	files := newMemory()
	s := start(t, files, Config{}, nil)
	const frames = 50
	for i := range uint64(frames) {
		done := make(chan struct{})
		s.Append(&Entry{Frame: frame(0, i+1, 1, 300), Waited: true, Done: func() { close(done) }})
		<-done
	}
	after, err := New(Config{}, Deps{Files: files.crash(func(int) int { return 2 })})
	if err != nil {
		t.Fatal(err)
	}
	last := uint64(0)
	for i := range uint64(frames) {
		var f Frame
		if ok, err := after.Next(0, last, &f); !ok || err != nil || f.First != i+1 || !bytes.Equal(f.Payload, frame(0, i+1, 1, 300).Payload) {
			t.Fatalf("frame %d: %v %v %d", i+1, ok, err, f.First)
		}
		last = f.Last()
	}
}
