package natsd_test

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headgate-io/headgate/internal/natsd"
)

const stored = 20

// storeOfMessages stores messages in dir, with and without headers, of which the third is removed again, and returns
// those that are left by sequence.
func storeOfMessages(t *testing.T, cfg natsd.Config) map[uint64]string {
	t.Helper()
	s, err := natsd.Start(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, js := connect(t, s)
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s.*"}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range stored {
		m := &nats.Msg{Subject: fmt.Sprintf("s.%d", i%3), Data: []byte(strings.Repeat(fmt.Sprint(i), 20))}
		if i%2 == 0 {
			m.Header = nats.Header{"K": {"v"}}
		}
		if _, err := js.PublishMsg(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.DeleteMsg(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	return messages(t, s)
}

// messages returns what the server gives out.
func messages(t *testing.T, s *natsd.Server) map[uint64]string {
	t.Helper()
	_, js := connect(t, s)
	stream, err := js.Stream(t.Context(), "S")
	if err != nil {
		t.Fatal(err)
	}
	all := map[uint64]string{}
	for seq := uint64(1); seq <= stream.CachedInfo().State.LastSeq; seq++ {
		m, err := stream.GetMsg(t.Context(), seq)
		if err == nil {
			all[seq] = m.Subject + " " + string(m.Data)
		} else if !errors.Is(err, jetstream.ErrMsgNotFound) {
			t.Fatal(err)
		}
	}
	return all
}

func blockOf(dir string) string {
	return filepath.Join(dir, "jetstream", "$G", "streams", "S", "msgs", "1.blk")
}

// TestM09OneDamagedByteCostsOneMessageAtMost damages the block at many places, each on a copy of its own, as a server that
// was stopped leaves it and as one that was killed does.
func TestM09OneDamagedByteCostsOneMessageAtMost(t *testing.T) {
	root := t.TempDir()
	original := natsd.Config{Name: "data", Dir: filepath.Join(root, "original"), Aside: filepath.Join(root, "aside")}
	want := storeOfMessages(t, original)
	block, err := os.ReadFile(blockOf(original.Dir))
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(block); at += 37 {
		killed := at%2 == 0
		name := fmt.Sprintf("byte %d of %d, killed %v", at, len(block), killed)
		cfg := damagedCopy(t, original, at, killed)
		for range 2 { // it is healed once, and stays reported
			s := start(t, cfg)
			got := messages(t, s)
			lost := len(want) - len(got)
			if lost > 1 || (lost == 1) != (len(s.Damage()) == 1) {
				t.Errorf("%s: %d messages lost, reported %+v", name, lost, s.Damage())
			}
			if len(s.Damage()) != len(s.EverDamaged()) {
				t.Errorf("%s: reported %+v, in the store %+v", name, s.Damage(), s.EverDamaged())
			}
			for seq, m := range got {
				if want[seq] != m {
					t.Errorf("%s: message %d is %q, want %q", name, seq, m, want[seq])
				}
			}
			s.Close()
		}
	}
}

func damagedCopy(t *testing.T, original natsd.Config, at int, killed bool) natsd.Config {
	t.Helper()
	root := t.TempDir()
	cfg := natsd.Config{Name: original.Name, Dir: filepath.Join(root, "copy"), Aside: filepath.Join(root, "aside")}
	if err := os.CopyFS(cfg.Dir, os.DirFS(original.Dir)); err != nil {
		t.Fatal(err)
	}
	block, err := os.ReadFile(blockOf(cfg.Dir))
	if err != nil {
		t.Fatal(err)
	}
	block[at] ^= 0x20
	if err := os.WriteFile(blockOf(cfg.Dir), block, 0o600); err != nil {
		t.Fatal(err)
	}
	if killed {
		for _, name := range []string{filepath.Join(filepath.Dir(blockOf(cfg.Dir)), "index.db"), filepath.Join(cfg.Dir, "stopped.json")} {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	return cfg
}

// TestM09ADamagedStoreThatIsNotToBeHealedStaysAsItIs is what the control store asks for: it has a copy.
func TestM09ADamagedStoreThatIsNotToBeHealedStaysAsItIs(t *testing.T) {
	root := t.TempDir()
	original := natsd.Config{Name: "data", Dir: filepath.Join(root, "original"), Aside: filepath.Join(root, "aside")}
	storeOfMessages(t, original)
	cfg := damagedCopy(t, original, 100, true)
	cfg.Aside = ""
	before, err := os.ReadFile(blockOf(cfg.Dir))
	if err != nil {
		t.Fatal(err)
	}
	_, err = natsd.Start(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if damaged, ok := errors.AsType[*natsd.DamagedError](err); !ok || damaged.All[0].Stream != "S" {
		t.Errorf("error %v", err)
	}
	if after, err := os.ReadFile(blockOf(cfg.Dir)); err != nil || string(after) != string(before) {
		t.Errorf("the block was changed: %v", err)
	}
}

// TestARecordThatWasNotWrittenToItsEndIsNoDamage: what a crash cuts off was never confirmed.
func TestARecordThatWasNotWrittenToItsEndIsNoDamage(t *testing.T) {
	root := t.TempDir()
	cfg := natsd.Config{Name: "data", Dir: filepath.Join(root, "store"), Aside: filepath.Join(root, "aside")}
	want := storeOfMessages(t, cfg)
	block, err := os.ReadFile(blockOf(cfg.Dir))
	if err != nil {
		t.Fatal(err)
	}
	// The last record is the tombstone of the message removed, behind the whole ones half of one more.
	if err := os.WriteFile(blockOf(cfg.Dir), append(block, block[:60]...), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, cfg)
	if got := messages(t, s); !maps.Equal(got, want) || s.Damage() != nil {
		t.Errorf("%d messages instead of %d, reported %+v", len(got), len(want), s.Damage())
	}
}

// TestM11AStoreThatHoldsLessThanWhenItWasStoppedIsReported: here a whole block has gone.
func TestM11AStoreThatHoldsLessThanWhenItWasStoppedIsReported(t *testing.T) {
	root := t.TempDir()
	cfg := natsd.Config{Name: "data", Dir: filepath.Join(root, "store"), Aside: filepath.Join(root, "aside")}
	want := storeOfMessages(t, cfg)
	if err := os.Remove(blockOf(cfg.Dir)); err != nil {
		t.Fatal(err)
	}
	s := start(t, cfg)
	if all := s.Damage(); len(all) != 1 || all[0].Stream != "S" || all[0].Messages != uint64(len(want)) || all[0].To != stored {
		t.Errorf("reported %+v", all)
	}
}

// TestWhatTheServerDoesToItsBlocksIsNoDamage: removed, purged and compacted messages, many blocks, orderly and other ends.
func TestWhatTheServerDoesToItsBlocksIsNoDamage(t *testing.T) {
	root := t.TempDir()
	cfg := natsd.Config{Name: "data", Dir: filepath.Join(root, "store"), Aside: filepath.Join(root, "aside")}
	body := []byte(strings.Repeat("x", 200<<10))
	for round := range 4 {
		s := start(t, cfg)
		if s.Damage() != nil {
			t.Fatalf("round %d: reported %+v", round, s.Damage())
		}
		_, js := connect(t, s)
		stream, err := js.CreateOrUpdateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s.*"}})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 120 { // 24 MiB, in blocks of 8
			m := &nats.Msg{Subject: fmt.Sprintf("s.%d", i%5), Data: body[:len(body)-i], Header: nats.Header{"K": {"v"}}}
			if _, err := js.PublishMsg(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		last := stream.CachedInfo().State.LastSeq
		for seq := last + 1; seq <= last+60; seq += 2 {
			if err := stream.SecureDeleteMsg(t.Context(), seq); err != nil {
				t.Fatal(err)
			}
		}
		if err := stream.Purge(t.Context(), jetstream.WithPurgeSubject("s.1"), jetstream.WithPurgeKeep(1)); err != nil {
			t.Fatal(err)
		}
		if err := stream.Purge(t.Context(), jetstream.WithPurgeSubject("s.2")); err != nil {
			t.Fatal(err)
		}
		if round == 2 { // as it is on the disk of a server that is killed now
			killed := natsd.Config{Name: cfg.Name, Dir: filepath.Join(root, "killed"), Aside: cfg.Aside}
			if err := os.CopyFS(killed.Dir, os.DirFS(cfg.Dir)); err != nil {
				t.Fatal(err)
			}
			if again := start(t, killed); again.Damage() != nil {
				t.Errorf("after a kill: reported %+v", again.Damage())
			}
		}
		s.Close()
	}
}
