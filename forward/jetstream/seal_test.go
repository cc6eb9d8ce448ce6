package jetstream_test

import (
	"testing"

	"github.com/headgate-io/headgate/forward/jetstream"
)

func TestSealWritesAMarkerThatTheLaneGoesOnBehind(t *testing.T) {
	r := newRig(t, t.TempDir(), 1<<20)
	seal := func(version, want uint64) {
		t.Helper()
		if last, err := r.backend.Seal(t.Context(), 0, version); last != want || err != nil {
			t.Fatalf("sealed at %d, %v; want %d", last, err, want)
		}
	}
	seal(5, 0) // a lane that has nothing yet
	r.send(newRun(0, 1, 10))
	seal(8, 10)
	seal(8, 10) // it is there already
	r.send(newRun(0, 11, 10))
	seal(9, 20)

	r.backend = r.open(1 << 20)
	if last, err := r.backend.Resume(t.Context(), 0); last != 20 || err != nil {
		t.Fatalf("resumed at %d, %v", last, err)
	}
	r.send(newRun(0, 11, 10)) // known
	r.send(newRun(0, 21, 10))
	seal(12, 30)
	r.send(newRun(0, 31, 1))
	if got := len(r.read(jetstream.Query{})); got != 4 {
		t.Errorf("%d runs read, want 4", got)
	}
	reader, err := jetstream.NewReader(r.connect(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if state, err := reader.State(t.Context(), "web"); err != nil || state.Messages != 8 {
		t.Errorf("%d messages, want 4 runs and 4 markers; %v", state.Messages, err)
	}
	if err := r.backend.Err(); err != nil {
		t.Error(err)
	}
}

// A lane that has nothing but a marker starts at 1 after a restart.
func TestSealedEmptyLaneResumes(t *testing.T) {
	r := newRig(t, t.TempDir(), 1<<20)
	if _, err := r.backend.Seal(t.Context(), 3, 2); err != nil {
		t.Fatal(err)
	}
	r.backend = r.open(1 << 20)
	if last, err := r.backend.Resume(t.Context(), 3); last != 0 || err != nil {
		t.Fatalf("resumed at %d, %v", last, err)
	}
	r.send(newRun(3, 1, 5))
}
