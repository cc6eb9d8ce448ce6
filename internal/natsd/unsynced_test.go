package natsd

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// F5: a sync of a block has failed; what is in it is in a new file, synced, before a server says that it has it.
func TestF5ABlockWhoseSyncFailedIsWrittenAgain(t *testing.T) {
	dir := t.TempDir()
	s, err := Start(t.Context(), Config{Name: "data", Dir: dir, MaxStore: 16 << 20}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	nc, err := s.Connect("test")
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "s", Subjects: []string{"s"}}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := js.Publish(t.Context(), "s", []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	blocks, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", "s", "msgs", "*.blk"))
	if err != nil || len(blocks) != 1 {
		t.Fatal(blocks, err)
	}
	back := make(chan struct{}, 1)
	nc.SetReconnectHandler(func(*nats.Conn) { back <- struct{}{} })
	before, err := os.Stat(blocks[0])
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(blocks[0])
	if err != nil {
		t.Fatal(err)
	}
	if !s.heal(t.Context(), "a write error") {
		t.Fatal(s.Fault())
	}
	after, err := os.Stat(blocks[0])
	if err != nil {
		t.Fatal(err)
	}
	if os.SameFile(before, after) {
		t.Error("it is the file of which a sync has failed")
	}
	if now, err := os.ReadFile(blocks[0]); err != nil || !bytes.Equal(now, content) {
		t.Errorf("%d bytes of %d, %v", len(now), len(content), err)
	}
	<-back
	if ack, err := js.Publish(t.Context(), "s", []byte("x")); err != nil || ack.Sequence != 4 {
		t.Errorf("%+v, %v", ack, err)
	}
}
