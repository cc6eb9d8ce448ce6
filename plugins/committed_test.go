package plugins

import (
	"bytes"
	"os"
	"testing"
)

// The scripted guest is committed for the tests of other packages; see commands for what it does.
func TestCommittedGuest(t *testing.T) {
	const file = "testdata/scripted.wasm"
	want := scripted(false).bytes()
	if os.Getenv("HEADGATE_WRITE_GUEST") != "" {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what the tests build (%v): run them with HEADGATE_WRITE_GUEST=1", file, err)
	}
}
