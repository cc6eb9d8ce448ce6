package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// How far the heap may grow between collections, in percent of what is in use and at least in bytes. Nearly all of it is
// buffers that are used again and hold no pointers, so that collecting costs little: measured, no CPU time, and a fifth less
// memory at its peak. But requests over HTTP/3 allocate, and without the bytes a heap of 6 MiB is collected each 2 MiB: that was
// a quarter of their CPU time.
const (
	garbage     = 30
	garbageRoom = 16 << 20
)

// smallestHeap times the percentage is what the runtime lets any heap have before it is collected, however little of it is in use. At
// the 1600 % that 16 MiB are of 1 MiB that would be 64 MiB.
const smallestHeap = 4 << 20

// growth is the percentage by which a heap may grow of which so many bytes are in use.
func growth(used uint64) int {
	room := uint64(garbageRoom) * 100 / max(used, 1<<20)
	least := (used + garbageRoom) * 100 / smallestHeap
	return int(max(garbage, min(room, least)))
}

// boundGarbage keeps to growth, looking behind each collection, until what it returns is called.
func boundGarbage() (end func()) {
	var mu sync.Mutex // guards over, and what is set
	over := false
	used := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	now := garbage
	var look func(int)
	arm := func() { runtime.AddCleanup(new([64]byte), look, 0) } // what nobody holds is gone behind the next one
	look = func(int) {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		metrics.Read(used)
		if next := growth(used[0].Value.Uint64()); next > now+now/8 || next < now-now/8 {
			now = next
			debug.SetGCPercent(next)
		}
		arm()
	}
	debug.SetGCPercent(now)
	look(0)
	return func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
	}
}
