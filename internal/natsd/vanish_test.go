package natsd

import (
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// storeOf starts a server with a stream of some messages and returns its folder.
func storeOf(t *testing.T, dir string, messages int) (*Server, jetstream.JetStream, string) {
	t.Helper()
	s, err := Start(t.Context(), Config{Name: "data", Dir: dir, MaxStore: 64 << 20, Aside: dir + ".damaged"}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	nc, err := s.Connect("test")
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateOrUpdateStream(t.Context(), jetstream.StreamConfig{Name: "s", Subjects: []string{"s.*"}, MaxBytes: 32 << 20}); err != nil {
		t.Fatal(err)
	}
	for i := range messages {
		if _, err := js.Publish(t.Context(), []string{"s.a", "s.b"}[i%2], make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	return s, js, filepath.Join(dir, "jetstream", "$G", "streams", "s")
}

// N02, F13: a block that is deleted while the server believes in it is noticed, and the server looks again; a block that the
// server itself removes is not.
func TestN02ABlockIsRemovedWhileInUse(t *testing.T) {
	s, js, folder := storeOf(t, t.TempDir(), 20)
	nc, err := s.Connect("watch")
	if err != nil {
		t.Fatal(err)
	}
	known := &files{dir: s.cfg.Dir}
	look := func() (said string) {
		for range 3 {
			if why := s.lostFiles(known, nc); why != "" {
				said = why
			}
		}
		return said
	}
	if why := look(); why != "" {
		t.Error("nothing has happened:", why)
	}
	blocks, err := filepath.Glob(filepath.Join(folder, "msgs", "*.blk"))
	if err != nil || len(blocks) < 2 {
		t.Fatal(blocks, err)
	}
	stream, err := js.Stream(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	for _, opts := range [][]jetstream.StreamPurgeOpt{{jetstream.WithPurgeSubject("s.a"), jetstream.WithPurgeKeep(1)}, {jetstream.WithPurgeKeep(2)}, {}} {
		if err := stream.Purge(t.Context(), opts...); err != nil {
			t.Fatal(err)
		}
		if why := look(); why != "" {
			t.Error("the server has purged:", why)
		}
	}
	if _, err := js.Publish(t.Context(), "s.a", nil); err != nil {
		t.Fatal(err)
	}
	if why := look(); why != "" {
		t.Error("a message more:", why)
	}
	if _, err := js.Publish(t.Context(), "s.b", nil); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(folder, "msgs", "*.blk"))
	if err != nil || len(left) == 0 {
		t.Fatal(left, err)
	}
	for _, path := range left {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if why := look(); why == "" {
		t.Error("a block was removed, and nothing is said")
	}
	back := make(chan struct{}, 1)
	js.Conn().SetReconnectHandler(func(*nats.Conn) { back <- struct{}{} })
	if !s.heal(t.Context(), "a test") {
		t.Fatal(s.Fault())
	}
	<-back
	if runtime.GOOS != "linux" { // elsewhere they are lost
		return
	}
	if m, err := stream.GetLastMsgForSubject(t.Context(), "s.b"); err != nil || m.Sequence != 22 {
		t.Errorf("what was written to the deleted file: %+v, %v", m, err)
	}
}

// A damaged definition of a stream costs no message, and is not reported as a loss.
func TestM09ADamagedDefinitionIsMended(t *testing.T) {
	for what, do := range map[string]func(folder string) error{
		"sum": func(folder string) error {
			return os.WriteFile(filepath.Join(folder, metaSumName), []byte("0123456789abcdef"), 0o600)
		},
		"no sum": func(folder string) error { return os.Remove(filepath.Join(folder, metaSumName)) },
		"content": func(folder string) error {
			return os.WriteFile(filepath.Join(folder, metaName), []byte(`{"name`), 0o600)
		},
		"no file": func(folder string) error { return os.Remove(filepath.Join(folder, metaName)) },
	} {
		dir := filepath.Join(t.TempDir(), "store")
		s, _, folder := storeOf(t, dir, 3)
		s.Close()
		s, _, _ = storeOf(t, dir, 0) // has a copy from now on
		s.Close()
		if err := do(folder); err != nil {
			t.Fatal(err)
		}
		s, js, _ := storeOf(t, dir, 0)
		stream, err := js.Stream(t.Context(), "s")
		if err != nil {
			t.Fatal(what, err)
		}
		if info := stream.CachedInfo(); info.State.Msgs != 3 || info.Config.MaxBytes != 32<<20 || len(s.Damage()) > 0 {
			t.Errorf("%s: %+v, %+v", what, info.State, s.Damage())
		}
		s.Close()
	}
}
