package partitioner

import (
	"testing"
	"time"
)

// A partition that takes less than the others is given back what was too much for it twice as late each time, and all of it when it
// is as strong as they are.
func TestWeakPartitionIsTriedEverMoreSeldom(t *testing.T) {
	w := newWorld(t, Settings{Ordering: BySource, Target: target}, 4)
	w.rest = 0.9 * 4 * target
	takes := 0.75 * target
	w.extra = func(l *Load) {
		l.Ack = []time.Duration{5 * time.Millisecond, 5 * time.Millisecond, 5 * time.Millisecond, 5 * time.Millisecond}
		if w.rest*float64(w.table.Counts()[2])/float64(w.table.Slots()) > takes {
			l.Ack[2] = 50 * time.Millisecond
		}
	}
	w.run(10 * time.Minute)
	early := w.counts[SetWeight]
	w.run(10 * time.Minute)
	before := w.counts[SetWeight]
	w.run(10 * time.Minute)
	if late := w.counts[SetWeight] - before; early == 0 || 2*late > early {
		t.Errorf("%d changes of its weight in the first 10 minutes, %d from the 20th on: %v", early, late, w.log)
	}
	takes = target
	for began := w.now; w.table.partitions[2].Weight < 1; {
		if w.tick(); w.now > began+time.Hour {
			t.Fatalf("its weight is still %.2f", w.table.partitions[2].Weight)
		}
	}
	quiet := w.counts[SetWeight]
	if w.run(10 * time.Minute); w.counts[SetWeight] != quiet {
		t.Error("its weight changes again")
	}
	if s := w.planner.guards.slow[2]; s.ceiling != 0 {
		t.Errorf("that it was weak is remembered: %+v", s)
	}
}
