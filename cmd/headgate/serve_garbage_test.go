package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

func TestGarbageHasRoomInASmallHeap(t *testing.T) {
	for used, want := range map[uint64]int{0: 400, 1 << 20: 425, 3 << 20: 475, 6 << 20: 266, 32 << 20: 50, 54 << 20: 30, 1 << 30: 30} {
		if got := growth(used); got != want {
			t.Errorf("a heap of %d bytes may grow by %d %%, want %d", used, got, want)
		}
		percent := uint64(growth(used))
		room := max(used+used*percent/100, smallestHeap*percent/100) - used
		if percent != garbage && (room < garbageRoom*98/100 || room > garbageRoom*102/100) {
			t.Errorf("a heap of %d bytes has %d bytes of room", used, room)
		}
	}
}

// What is set follows what is in use, collection by collection, and not any more after the end.
func TestGarbageFollowsTheHeap(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	runtime.GC()
	used := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(used)
	small := growth(used[0].Value.Uint64()) > 2*garbage // other tests may have left more
	end := boundGarbage()
	set := func() int {
		read := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(read)
		return int(read[0].Value.Uint64())
	}
	if got := set(); small && got == garbage {
		t.Fatalf("a small heap may grow by %d %%", got)
	}
	large := make([]byte, 256<<20) // not touched, so not resident
	for set() != garbage {
		runtime.GC()
		runtime.Gosched()
	}
	runtime.KeepAlive(large)
	end()
	debug.SetGCPercent(77)
	for range 3 {
		runtime.GC()
		runtime.Gosched()
	}
	if got := set(); got != 77 {
		t.Errorf("after the end somebody sets %d %%", got)
	}
}
