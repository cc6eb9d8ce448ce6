package forward_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward"
	"github.com/headgate-io/headgate/forward/forwardtest"
)

// Whatever goes wrong on the way, everything is stored once and in order, and only what is refused alone fails.
func TestABackendThatFailsInEveryWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := new(forwardtest.Backend)
		b.Judge(func(run *forward.Run) error {
			if forwardtest.Contains(t, run, "poison") {
				return &forward.SendError{Refused: true, Code: event.EventTooLarge}
			}
			return nil
		})
		late := make(chan struct{})
		down := errors.New("down")
		b.Script(
			forwardtest.Step{Err: down},
			forwardtest.Step{Err: &forward.SendError{After: time.Minute, Err: down}},
			forwardtest.Step{After: make(chan struct{})}, // never
			forwardtest.Step{After: late, Err: down},
			forwardtest.Step{Err: &forward.SendError{Refused: true}}, // the run: its first half is next
			forwardtest.Step{Err: down},
			forwardtest.Step{After: make(chan struct{})},
		)
		f, stop := forwardtest.Start(t, forward.Config{Partitions: 1, Codec: "s2", FrameEvents: 8, SendTimeout: 10 * time.Second}, b)
		time.AfterFunc(2*time.Minute, func() { close(late) })
		var events, want []string
		for i := range 40 {
			events = append(events, fmt.Sprint("event ", i))
			if i != 13 && i != 39 {
				want = append(want, events[i])
			}
		}
		events[13], events[39] = "poison", "poison"
		failed := forwardtest.Deliver(t, f, forwardtest.Batch(1, events...))
		stop()
		if fmt.Sprint(failed) != "[{13 event_too_large false} {39 event_too_large false}]" {
			t.Errorf("failed %v, want 13 and 39", failed)
		}
		if got := forwardtest.Events(t, b.Runs()...); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("stored %q, want %q", got, want)
		}
	})
}

// An answer that was lost costs a second send, not a second copy: the lane sends the same run, the backend knows it.
func TestALostAnswerIsNoSecondCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := new(forwardtest.Backend)
		for range 5 {
			b.Script(forwardtest.Step{Err: errors.New("cut"), Store: true})
		}
		f, _ := forwardtest.Start(t, forward.Config{Partitions: 1, Codec: "s2"}, b)
		forwardtest.Deliver(t, f, forwardtest.Batch(1, "a"))
		forwardtest.Deliver(t, f, forwardtest.Batch(1, "b"))
		if got := fmt.Sprint(forwardtest.Events(t, b.Runs()...)); got != "[a b]" || b.Sends() != 7 {
			t.Errorf("stored %s in %d sends, want [a b] in 7", got, b.Sends())
		}
	})
}
