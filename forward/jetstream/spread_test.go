package jetstream_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/forward/jetstream"
)

func (r *rig) openSpread(streams int) (*jetstream.Backend, error) {
	cfg := jetstream.Config{Stream: "wide", Gateway: gateway, Streams: streams, Partitions: 8, Own: true}
	return jetstream.Open(r.t.Context(), r.conn, cfg, quiet)
}

// TestSpreadStreams: partitions go to three streams, each lane is read back in its order, and goes on after a restart.
func TestSpreadStreams(t *testing.T) {
	r := newRig(t, t.TempDir(), 1<<20)
	b, err := r.openSpread(3)
	if err != nil {
		t.Fatal(err)
	}
	send := func(b *jetstream.Backend, rounds ...uint64) {
		for _, first := range rounds {
			for p := range int32(8) {
				run := newRun(p, first, 1)
				run.Stream = "wide"
				if err := b.Send(t.Context(), run); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	send(b, 1, 2, 3)
	reader, err := jetstream.NewReader(r.connect(), 3)
	if err != nil {
		t.Fatal(err)
	}
	state, err := reader.State(t.Context(), "wide")
	if err != nil || state.Messages != 24 || fmt.Sprint(state.Ends) != "[9 9 6]" {
		t.Errorf("%+v, %v", state, err)
	}
	if b, err = r.openSpread(3); err != nil {
		t.Fatal(err)
	}
	send(b, 3, 4) // 3 is stored already
	five := int32(5)
	for _, c := range []struct {
		query jetstream.Query
		want  int
	}{
		{jetstream.Query{}, 32}, {jetstream.Query{Limit: 5}, 5}, {jetstream.Query{Follow: true, Limit: 32}, 32},
		{jetstream.Query{Partition: &five}, 4}, {jetstream.Query{After: state.Ends}, 8}, {jetstream.Query{Now: true}, 0},
	} {
		c.query.Stream = "wide"
		last, n := map[int32]uint64{}, 0
		err := reader.Read(t.Context(), c.query, func(m jetstream.Message) error {
			if m.First != last[m.Partition]+1 && c.query.After == nil {
				t.Errorf("lane %d: %d after %d", m.Partition, m.First, last[m.Partition])
			}
			last[m.Partition] = m.First
			n++
			return nil
		})
		if err != nil || n != c.want {
			t.Errorf("%+v: %d messages, %v; want %d", c.query, n, err, c.want)
		}
	}
	gone, err := r.keeper(jetstream.KeeperConfig{}).Purge(t.Context(), "wide", 3, jetstream.Purge{Count: true})
	if err != nil || gone != 24 {
		t.Errorf("%d gone, %v", gone, err)
	}
	send(b, 5)
}

func TestSpreadReadEndsWithItsContextAndCallback(t *testing.T) {
	r := newRig(t, t.TempDir(), 1<<20)
	b, err := r.openSpread(2)
	if err != nil {
		t.Fatal(err)
	}
	run := newRun(1, 1, 1)
	run.Stream = "wide"
	if err := b.Send(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	reader, err := jetstream.NewReader(r.connect(), 2)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	follow := jetstream.Query{Stream: "wide", Follow: true}
	err = reader.Read(ctx, follow, func(jetstream.Message) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("end of the context: %v", err)
	}
	broken := errors.New("broken")
	if err := reader.Read(t.Context(), follow, func(jetstream.Message) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("error of the callback: %v", err)
	}
}

func TestSpreadCannotChange(t *testing.T) {
	r := newRig(t, t.TempDir(), 1<<20)
	for _, c := range []struct {
		streams int
		refused bool
	}{{2, false}, {3, true}, {1, true}, {2, false}} {
		_, err := r.openSpread(c.streams)
		if spread, ok := errors.AsType[*jetstream.SpreadError](err); ok != c.refused || ok && !strings.Contains(spread.Error(), "streams: 2") {
			t.Errorf("streams: %d: %v", c.streams, err)
		}
	}
}

func TestAddress(t *testing.T) {
	a := jetstream.Address{URL: "nats://u:secret@a:4222,tls://b"}
	if err := a.Check(); err != nil || strings.Contains(a.String(), "secret") {
		t.Errorf("%s: %v", a, err)
	}
	for _, url := range []string{"", "a:4222", "http://a", "nats://", "nats://a,"} {
		if (jetstream.Address{URL: url}).Check() == nil {
			t.Errorf("%q was accepted", url)
		}
	}
	missing := filepath.Join(t.TempDir(), "none.creds")
	for creds, want := range map[string]string{"env:HEADGATE_NO_SUCH": "HEADGATE_NO_SUCH", "file:" + missing: missing, missing: missing} {
		a := jetstream.Address{URL: "nats://127.0.0.1:1", Creds: creds}
		if _, err := jetstream.Dial(t.Context(), a, quiet, "test"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", creds, err)
		}
	}
}
