package partitioner

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/race"
)

// A clock that steps stops no split, and back where it was nothing is held for longer than before.
func TestClockStepsStopNoSplit(t *testing.T) {
	for _, step := range []time.Duration{2 * time.Minute, -2 * time.Minute} {
		w := warm(t, BySource, 8)
		w.now += step
		w.run(3 * time.Second)
		if len(w.log) != 0 {
			t.Errorf("a step of %v changes an even load: %v", step, w.log)
		}
		w.keys["hot"] = 4 * bigT
		w.run(time.Second)
		if !w.isSplit("hot") {
			t.Errorf("behind a step of %v a hot key stays whole: %v", step, w.log)
		}
		w.now -= step
		w.keys["hot"] = 0
		w.run(3*time.Minute + max(0, step))
		if w.isSplit("hot") {
			t.Errorf("behind a step of %v and back a key stays split: %v", step, w.log)
		}
	}
}

// A table of a version to come is refused by that name, whatever else is in it.
func TestTableOfANewerVersionIsRefusedByName(t *testing.T) {
	_, err := ParseTable(secret, []byte(`{"format":2,"version":7,"regions":["a"]}`))
	if err == nil || !strings.Contains(err.Error(), "its format is 2, of a newer version of Headgate than this one, which knows 1") {
		t.Error(err)
	}
}

// Ten million keys from a million sources, each once and ten at a time, take the memory that the first ones took, and look like no
// heavy key; and a key that a million sources share is spread evenly over its children. Without HEADGATE_PARTITIONER it is a tenth of them.
func TestTenMillionKeysOfAMillionSourcesTakeNoMemory(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	table := must(t)(NewTable(secret, 1024, Equal(16)))
	shared := []byte("shared")
	hi, lo := table.KeyHash(event.AsStream, shared)
	table = must(t)(table.Split(hi, lo, []int32{0, 1, 2, 3}))
	m := NewMeter(CountersFor(16))
	p := New(table, m)
	b := keyed("0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "shared")
	b.Producer = make([]byte, 0, 32)
	children := map[int32]int{}
	pass := func(from, to int) {
		for n := from; n < to; n++ {
			b.Producer = strconv.AppendInt(b.Producer[:0], int64(n), 10)
			for i := range 10 {
				b.Events[i].Key = strconv.AppendInt(b.Events[i].Key[:0], int64(10*n+i), 16)
			}
			p.Assign(b, nil)
			children[b.Events[10].Partition]++
		}
	}
	sources := 100_000
	if os.Getenv("HEADGATE_PARTITIONER") != "" {
		sources = 1_000_000
	}
	pass(0, 1000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	pass(1000, sources)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("%d bytes were allocated", n)
	}
	for partition, n := range children {
		if n < sources/4*24/25 || n > sources/4*26/25 {
			t.Errorf("partition %d has %d of %d sources", partition, n, sources)
		}
	}
	r := m.Read(table, Tick{Elapsed: tick, Share: 0.01})
	if len(children) != 4 || len(r.Load.Heavy.Keys) != 1 || r.Load.Heavy.Keys[0].Hi != hi {
		t.Errorf("%d children, heavy keys %+v", len(children), r.Load.Heavy.Keys)
	}
}
