package jetstream_test

import (
	"context"
	"errors"
	"testing"

	"github.com/headgate-io/headgate/forward"
)

// F19: the connection is lost while a run is under way, and the server comes back without the stream.
func TestF19AStreamThatIsGoneWhileARunHasNoAnswer(t *testing.T) {
	r := newRig(t, t.TempDir(), 1<<20)
	r.send(newRun(0, 1, 10))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.backend.Send(ctx, newRun(0, 11, 10)); err == nil {
		t.Fatal("it was confirmed, and nobody waited for that")
	}
	if err := r.side.DeleteStream(t.Context(), "HEADGATE_web"); err != nil {
		t.Fatal(err)
	}
	err := r.backend.Send(t.Context(), newRun(0, 11, 10))
	if lost, ok := errors.AsType[*forward.LostError](err); !ok || lost.Stored != 0 || lost.Confirmed != 10 {
		t.Errorf("%v, want that ten events are lost", err)
	}
	r.send(newRun(0, 1, 10))
	r.send(newRun(0, 11, 10))
}
