package natsd

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// vanished starts a server with 31 MiB in a stream, has do something to its folder when it was looked at, and returns the stream
// after the store was opened again.
func vanished(t *testing.T, do func(folder string, blocks []string) error) (*Server, jetstream.Stream) {
	t.Helper()
	s, js, folder := storeOf(t, filepath.Join(t.TempDir(), "store"), 20)
	s.cfg.PutBack = true
	nc, err := s.Connect("watch")
	if err != nil {
		t.Fatal(err)
	}
	look := func() {
		if err := s.lookAfter(t.Context(), nc); err != nil {
			t.Fatal(err)
		}
	}
	look()
	if s.Reopened() != 0 {
		t.Fatal("nothing has happened")
	}
	publish := func(data []byte) {
		t.Helper()
		if _, err := js.Publish(t.Context(), "s.a", data); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 11 { // one block more, which the server closes as the next one begins
		if publish(make([]byte, 1<<20)); n == 4 {
			s.known.peek()
		}
	}
	publish([]byte("behind the look"))
	s.known.peek()
	blocks, err := filepath.Glob(filepath.Join(folder, "msgs", "*.blk"))
	if err != nil || len(blocks) < 2 {
		t.Fatal(blocks, err)
	}
	slices.Sort(blocks)
	if err := do(folder, blocks); err != nil {
		t.Fatal(err)
	}
	back := make(chan struct{}, 1)
	js.Conn().SetReconnectHandler(func(*nats.Conn) { back <- struct{}{} })
	for range 3 {
		if look(); s.Reopened() > 0 {
			break
		}
	}
	if s.Reopened() != 1 {
		t.Fatal("it was not noticed")
	}
	<-back
	stream, err := js.Stream(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	if ack, err := js.Publish(t.Context(), "s.a", []byte("x")); err != nil || ack.Sequence != 33 {
		t.Errorf("%+v, %v", ack, err)
	}
	return s, stream
}

// N02, F13: whatever is removed of a store while it is in use, also all of it, is put back with every message; and the store goes on.
func TestN02AllOfTheStoreIsRemovedWhileInUse(t *testing.T) {
	for what, do := range map[string]func(folder string, blocks []string) error{
		"the oldest block":     func(_ string, blocks []string) error { return os.Remove(blocks[0]) },
		"a stream's folder":    func(folder string, _ []string) error { return os.RemoveAll(folder) },
		"its messages":         func(folder string, _ []string) error { return os.RemoveAll(filepath.Join(folder, "msgs")) },
		"the folder of stores": func(folder string, _ []string) error { return os.RemoveAll(filepath.Join(folder, "../../../../")) },
		"moved": func(folder string, _ []string) error {
			dir := filepath.Join(folder, "../../../../")
			return os.Rename(dir, dir+".moved")
		},
	} {
		t.Run(what, func(t *testing.T) {
			s, stream := vanished(t, do)
			info, err := stream.Info(t.Context())
			if err != nil || info.State.Msgs != 33 || info.State.FirstSeq != 1 || info.Config.MaxBytes != 32<<20 || len(s.Damage()) > 0 {
				t.Errorf("%+v, %v, damage %+v", info.State, err, s.Damage())
			}
			if m, err := stream.GetMsg(t.Context(), 32); err != nil || string(m.Data) != "behind the look" {
				t.Errorf("%+v, %v", m, err)
			}
		})
	}
}

// N02: a block that is made shorter from outside is noticed while the server runs, and what is lost is reported.
func TestN02ABlockIsCutOffWhileInUse(t *testing.T) {
	s, stream := vanished(t, func(_ string, blocks []string) error { return os.Truncate(blocks[0], 3<<20) })
	info, err := stream.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lost := uint64(0)
	for _, d := range s.Damage() {
		lost += d.Messages
	}
	if lost == 0 || info.State.Msgs+lost < 33 {
		t.Errorf("%d messages, %+v", info.State.Msgs, s.Damage())
	}
}

// Another folder in place of the store's ends the watch, and is left as it is.
func TestAnotherFolderInPlaceOfTheStore(t *testing.T) {
	s, _, _ := storeOf(t, filepath.Join(t.TempDir(), "store"), 1)
	if err := os.Rename(s.cfg.Dir, s.cfg.Dir+".moved"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(s.cfg.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context()); err == nil {
		t.Error("it is not noticed")
	}
	if left, err := os.ReadDir(s.cfg.Dir); err != nil || len(left) != 0 {
		t.Error(left, err)
	}
}
