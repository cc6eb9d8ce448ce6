package gateway

import (
	"os"
	"runtime"
	"slices"
	"testing"
)

// The runtime gets so many processors more, and then has again what it finds or was told.
func TestF61TheRuntimeHasMoreProcessorsForAWhile(t *testing.T) {
	was := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(was)
	trace := func(usual int) {
		t.Helper()
		to, got := spread(), []int{}
		for _, more := range []int{1, 2, 0, 1, 0} {
			to(more)
			got = append(got, runtime.GOMAXPROCS(0)-usual)
		}
		if !slices.Equal(got, []int{1, 2, 0, 1, 0}) {
			t.Errorf("more processors than the usual %d: %v", usual, got)
		}
	}
	t.Setenv("GOMAXPROCS", "3")
	runtime.GOMAXPROCS(3)
	trace(3)
	os.Unsetenv("GOMAXPROCS") // Setenv restores it
	runtime.SetDefaultGOMAXPROCS()
	trace(runtime.GOMAXPROCS(0))
}
