package main

import (
	"runtime"
	"testing"
)

// However many streams say that somebody waits for their syncs, there is one more, and none where the environment says how many.
func TestOneMoreProcessor(t *testing.T) {
	t.Setenv("GOMAXPROCS", "")
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	more := oneMore()
	for range 3 {
		more()
	}
	if got := runtime.GOMAXPROCS(0); got != before+1 {
		t.Errorf("%d run at a time, want one more than %d", got, before)
	}
	t.Setenv("GOMAXPROCS", "7")
	if oneMore() != nil {
		t.Error("GOMAXPROCS in the environment is not heeded")
	}
}
