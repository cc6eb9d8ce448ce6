package natsd_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/headgate-io/headgate/internal/natsd"
)

// A block that was emptied while it is in use and written on to begins with zeros: all that may have been there counts as lost.
func TestM09ABlockThatWasEmptiedIsCountedWhole(t *testing.T) {
	dir := t.TempDir()
	cfg := natsd.Config{Name: "n", Dir: filepath.Join(dir, "js"), Aside: filepath.Join(dir, "aside")}
	before := storeOfMessages(t, cfg)
	block := blockOf(cfg.Dir)
	content, err := os.ReadFile(block)
	if err != nil {
		t.Fatal(err)
	}
	clear(content[:len(content)*2/3])
	if err := os.WriteFile(block, content, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(filepath.Dir(block), "index.db"), filepath.Join(cfg.Dir, "stopped.json")} {
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	s, err := natsd.Start(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	lost, named := len(before)-len(messages(t, s)), uint64(0)
	for _, d := range s.Damage() {
		named += d.Messages
	}
	if lost < 5 || named < uint64(lost) || named > stored {
		t.Errorf("%d messages are lost, up to %d named: %+v", lost, named, s.Damage())
	}
}
