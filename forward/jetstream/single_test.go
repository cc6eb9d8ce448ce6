package jetstream_test

import (
	"strings"
	"testing"

	"github.com/headgate-io/headgate/forward/jetstream"
)

// N05: however much waits, each run is a publish of its own, with its own confirmation: no batch of the server's that could be too
// large, with an id that could be too long, or that the server does not know.
func TestN05EachRunIsAPublishOfItsOwn(t *testing.T) {
	r := newRig(t, t.TempDir(), 64<<20)
	const runs = 1100
	for i := range uint64(runs) {
		r.send(newRun(0, i+1, 1))
	}
	all := r.read(jetstream.Query{})
	if len(all) != runs {
		t.Fatalf("%d runs are stored", len(all))
	}
	for i, m := range all {
		if m.First != uint64(i+1) || m.Seq != m.First {
			t.Fatalf("run %d is %d at %d", i, m.First, m.Seq)
		}
	}
	stream, err := r.side.Stream(t.Context(), jetstream.StreamName("web"))
	if err != nil {
		t.Fatal(err)
	}
	for _, seq := range []uint64{1, 1001, runs} {
		msg, err := stream.GetMsg(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		for name := range msg.Header {
			if strings.HasPrefix(name, "Nats-Batch-") {
				t.Errorf("message %d has the header %s", seq, name)
			}
		}
	}
}
