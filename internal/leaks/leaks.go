// Package leaks fails tests that leave goroutines behind. Those that are on their way to their end get the time for it, however
// slow the machine is.
package leaks

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience bounds how long a goroutine may take to its end.
const patience = 2 * time.Minute

// Main runs the tests of a package, and fails when goroutines are left behind all of them.
func Main(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if err := find(patience); err != nil {
			fmt.Fprintln(os.Stderr, "the tests have left goroutines:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// None fails a test when goroutines are left that options do not name.
func None(t testing.TB, options ...goleak.Option) {
	t.Helper()
	if err := find(patience, options...); err != nil {
		t.Error(err)
	}
}

func find(patience time.Duration, options ...goleak.Option) error {
	for end := time.Now().Add(patience); ; {
		err := goleak.Find(options...) // which tries for half a second
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}
