package jetstream_test

import (
	"fmt"
	"testing"

	"github.com/headgate-io/headgate/forward/jetstream"
)

// A dead letter has a JetStream stream of its own beside the one of its stream, and lanes that go on like any.
func TestDeadLetterIsAStreamBesideItsStream(t *testing.T) {
	r := newRig(t, t.TempDir(), 1<<20)
	r.send(newRun(0, 1, 1))
	open := func() *jetstream.Backend {
		cfg := jetstream.Config{Stream: "web.deadletter", Gateway: gateway, MaxBytes: 1 << 20}
		b, err := jetstream.Open(t.Context(), r.conn, cfg, quiet)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	run := newRun(0, 1, 3)
	run.Stream = "web.deadletter"
	if err := open().Send(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if last, err := open().Resume(t.Context(), 0); err != nil || last != 3 {
		t.Errorf("it goes on behind %d, %v; want 3", last, err)
	}
	stream, err := r.side.Stream(t.Context(), "HEADGATE_web_DEADLETTER")
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(stream.CachedInfo().Config.Subjects); got != "[headgate.web.deadletter.*.*]" {
		t.Errorf("subjects %s", got)
	}
	for name, want := range map[string]string{"web": "[web/0/1]", "web.deadletter": "[web.deadletter/0/3]"} {
		var got []string
		err := r.reader.Read(t.Context(), jetstream.Query{Stream: name}, func(m jetstream.Message) error {
			got = append(got, fmt.Sprint(m.Stream, "/", m.Partition, "/", m.Last))
			if m.Gateway != gateway {
				t.Errorf("gateway %q", m.Gateway)
			}
			return nil
		})
		if err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s holds %v, %v; want %s", name, got, err, want)
		}
	}
}
