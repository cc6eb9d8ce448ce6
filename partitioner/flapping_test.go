package partitioner

import (
	"testing"
	"time"
)

// A partition that is there and gone every five seconds gets nothing while it does so, and nothing else moves for it.
func TestFlappingPartitionCausesNoMoves(t *testing.T) {
	w := warm(t, Unordered, 8)
	w.extra = func(l *Load) {
		if w.now/(5*time.Second)%2 == 0 {
			l.Lost = []int32{2}
		}
	}
	w.keys["hot"] = 4 * bigT
	w.run(10 * time.Minute)
	for _, s := range w.table.splits.all {
		for _, c := range s.children {
			if c.owner == 2 {
				t.Error("a child was put on it")
			}
		}
	}
	to := 0
	for _, s := range w.table.slots {
		if s.owner == 2 && s.epoch > 1 {
			to++
		}
	}
	if to > 2 {
		t.Errorf("%d slots were moved to it", to)
	}
}
