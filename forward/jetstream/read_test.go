package jetstream_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/headgate-io/headgate/forward/jetstream"
)

func seqs(messages []jetstream.Message) string {
	var all []uint64
	for _, m := range messages {
		all = append(all, m.Seq)
	}
	return fmt.Sprint(all)
}

func TestReadSelects(t *testing.T) {
	r := newRig(t, t.TempDir(), 1<<20)
	if got := r.read(jetstream.Query{}); len(got) != 0 {
		t.Errorf("an empty stream gave %v", got)
	}
	for i := range uint64(6) {
		r.send(newRun(int32(i%2), i/2*10+1, 10))
	}
	one, two := int32(1), int32(2)
	for _, c := range []struct {
		query jetstream.Query
		want  string
	}{
		{jetstream.Query{}, "[1 2 3 4 5 6]"},
		{jetstream.Query{After: []uint64{3}}, "[4 5 6]"},
		{jetstream.Query{After: []uint64{6}}, "[]"},
		{jetstream.Query{Now: true}, "[]"},
		{jetstream.Query{Limit: 2}, "[1 2]"},
		{jetstream.Query{After: []uint64{2}, Limit: 2}, "[3 4]"},
		{jetstream.Query{Partition: &one}, "[2 4 6]"},
		{jetstream.Query{Partition: &one, After: []uint64{2}, Limit: 1}, "[4]"},
		{jetstream.Query{Partition: &two}, "[]"},
		{jetstream.Query{Limit: 6, Follow: true}, "[1 2 3 4 5 6]"},
	} {
		if got := seqs(r.read(c.query)); got != c.want {
			t.Errorf("%+v: %s, want %s", c.query, got, c.want)
		}
	}
}

func TestReadFollows(t *testing.T) {
	r := newRig(t, t.TempDir(), 1<<20)
	r.send(newRun(0, 1, 10))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got []uint64
	err := r.reader.Read(ctx, jetstream.Query{Stream: "web", Follow: true}, func(m jetstream.Message) error {
		got = append(got, m.Last)
		if len(got) == 5 {
			cancel()
			return nil
		}
		return r.backend.Send(t.Context(), newRun(0, m.Last+1, 10))
	})
	if !errors.Is(err, context.Canceled) || fmt.Sprint(got) != "[10 20 30 40 50]" {
		t.Errorf("read %v, %v", got, err)
	}
}

func TestReadEndsWithItsCallback(t *testing.T) {
	r := newRig(t, t.TempDir(), 1<<20)
	r.send(newRun(0, 1, 10))
	r.send(newRun(0, 11, 10))
	broken := errors.New("broken pipe")
	for _, end := range []error{broken, jetstream.Stop} {
		calls := 0
		err := r.reader.Read(t.Context(), jetstream.Query{Stream: "web", Follow: true}, func(jetstream.Message) error {
			calls++
			return end
		})
		if calls != 1 || (end == broken) != errors.Is(err, broken) || (end == jetstream.Stop) != (err == nil) {
			t.Errorf("%v: %d calls, %v", end, calls, err)
		}
	}
}

func TestReadOfAnUnknownStream(t *testing.T) {
	r := newRig(t, t.TempDir(), 1<<20)
	for _, name := range []string{"other", "", "a.b", "*"} {
		if err := r.reader.Read(t.Context(), jetstream.Query{Stream: name}, nil); !errors.Is(err, jetstream.ErrNoStream) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// What was purged in between is skipped, and a read whose last messages were purged under it ends.
func TestReadPassesHoles(t *testing.T) {
	r := newRig(t, t.TempDir(), 1<<20)
	for i := range uint64(5) {
		r.send(newRun(0, i*10+1, 10))
	}
	stream, err := r.side.Stream(t.Context(), "HEADGATE_web")
	if err != nil {
		t.Fatal(err)
	}
	for _, seq := range []uint64{2, 5} {
		if err := stream.DeleteMsg(t.Context(), seq); err != nil {
			t.Fatal(err)
		}
	}
	if got := seqs(r.read(jetstream.Query{})); got != "[1 3 4]" {
		t.Errorf("read %s", got)
	}
}

// The messages that a read waits for may be purged before it gets them: it ends all the same.
func TestReadEndsWhenTheRestIsPurged(t *testing.T) {
	r := newRig(t, t.TempDir(), 64<<20)
	for i := range uint64(5) { // more than a reader fetches ahead
		run := newRun(0, i+1, 1)
		run.Payload = make([]byte, 7<<20)
		r.send(run)
	}
	calls := 0
	err := r.reader.Read(t.Context(), jetstream.Query{Stream: "web"}, func(m jetstream.Message) error {
		if calls++; calls == 1 {
			r.purge()
		}
		return nil
	})
	if err != nil || calls == 0 || calls == 5 {
		t.Errorf("%d calls, %v", calls, err)
	}
}
