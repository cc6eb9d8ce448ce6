package wholefile

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWriteReplacesAndLeavesNothingElse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, content := range []string{"one", "", "three"} {
		if err := Write(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != content {
			t.Errorf("%q, %v, want %q", got, err, content)
		}
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := Write(filepath.Join(path, "below"), nil); err == nil {
		t.Error("written below a file")
	}
}
