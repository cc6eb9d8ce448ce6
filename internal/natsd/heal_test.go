package natsd

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// F9: a server that has given up its store is replaced on the same folder; connections come back by themselves, and what was
// confirmed is there.
func TestF09AStoreThatWasGivenUpIsOpenedAgain(t *testing.T) {
	var free int64
	s, err := Start(t.Context(), Config{Name: "data", Dir: t.TempDir(), MaxStore: 16 << 20, Need: 1, Free: func() (int64, error) { return free, nil }},
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	nc, err := s.Connect("test")
	if err != nil {
		t.Fatal(err)
	}
	back := make(chan struct{}, 1)
	nc.SetReconnectHandler(func(*nats.Conn) { back <- struct{}{} })
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "s", Subjects: []string{"s"}}); err != nil {
		t.Fatal(err)
	}
	publish := func() (uint64, error) {
		ack, err := js.Publish(t.Context(), "s", []byte("x"), jetstream.WithRetryAttempts(0))
		if err != nil {
			return 0, err
		}
		return ack.Sequence, nil
	}
	if seq, err := publish(); seq != 1 || err != nil {
		t.Fatal(seq, err)
	}
	if why := s.sick(); why != "" {
		t.Fatal(why)
	}
	if err := s.ns.Load().ShutdownJetStream(); err != nil {
		t.Fatal(err)
	}
	if _, err := publish(); err == nil {
		t.Error("confirmed without a store")
	}
	why := s.sick()
	if why == "" || s.hasRoom(why) || s.Fault() == "" {
		t.Fatalf("%q: opened on a full disk; %q", why, s.Fault())
	}
	free = 1
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if !s.hasRoom(why) || s.heal(ended, why) {
		t.Error("opened again although it is to stop")
	}
	if !s.heal(t.Context(), why) || s.Fault() != "" || s.sick() != "" || s.Reopened() != 1 {
		t.Fatalf("%q, %q", s.Fault(), s.sick())
	}
	<-back
	if seq, err := publish(); seq != 2 || err != nil {
		t.Errorf("message %d, %v", seq, err)
	}
}
