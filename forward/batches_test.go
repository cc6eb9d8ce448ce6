package forward

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/event"
)

// N07: a partition that fills its frames again and again makes no other partition send the little that it has: each has its own
// frame, which goes when it is full or due.
func TestN07EachPartitionHasItsOwnFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const partitions, hot, rounds, perFrame = 256, 7, 20, 100
		m := &memory{}
		cfg := config(partitions)
		cfg.FrameEvents, cfg.LingerIdle = perFrame, time.Second
		f := start(t, cfg, m, Deps{})
		for round := range rounds {
			b := batch(event.Accepted)
			for range perFrame {
				b.Events = append(b.Events, event.Event{Data: []byte("hot"), Partition: hot, Slot: event.NoSlot, Child: event.NoSlot})
			}
			for p := range int32(partitions) {
				if p != hot {
					b.Events = append(b.Events, event.Event{Data: []byte("cold"), Partition: p, Slot: event.NoSlot, Child: event.NoSlot})
				}
			}
			forward(t, f, b)
			synctest.Wait()
			if n := len(m.sent()); n != round+1 {
				t.Fatalf("round %d: %d runs were sent, want the hot partition's alone", round, n)
			}
		}
		<-time.After(2 * time.Second)
		cold := 0
		for _, run := range m.sent() {
			switch {
			case run.Partition == hot && run.Events != perFrame:
				t.Errorf("a frame of the hot partition has %d events, want %d", run.Events, perFrame)
			case run.Partition != hot:
				if cold++; run.Events != rounds {
					t.Errorf("partition %d sent %d events at a time, want %d", run.Partition, run.Events, rounds)
				}
			}
		}
		if cold != partitions-1 {
			t.Errorf("%d frames of the others, want one each", cold)
		}
	})
}
