package forward

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/event"
)

// F21: one event of a full frame is refused for good by a backend that takes 50 ms for each call: within 5 s the partition is
// behind it, and takes what comes then.
func TestF21ThePartitionMovesOnWithinSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		judge := poisoned(t, "poison")
		m := &memory{answer: func(ctx context.Context, run *Run) error {
			<-time.After(50 * time.Millisecond)
			return judge(ctx, run)
		}}
		cfg := config(1)
		f := start(t, cfg, m, Deps{})
		b := batch(event.Delivered)
		for i := range 10_000 {
			word := "fine"
			if i == 7777 {
				word = "poison"
			}
			b.Events = append(b.Events, event.Event{Data: fmt.Append(nil, word, i), Slot: event.NoSlot, Child: event.NoSlot})
		}
		began := time.Now()
		r := forward(t, f, b)
		next := forward(t, f, batch(event.Delivered, "next"))
		waitDelivered(t, r)
		waitDelivered(t, next)
		if took := time.Since(began); took > 5*time.Second || len(r.Failed()) != 1 || r.Failed()[0].Index != 7777 {
			t.Errorf("it took %v, refused is %v", took, r.Failed())
		}
	})
}
