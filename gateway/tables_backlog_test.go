package gateway

import (
	"testing"
	"time"

	"github.com/headgate-io/headgate/forward"
)

// A lane that was slow when its last events came, and gets none any more, can be left: else a key that was split when the backend
// went away stayed split for as long as nobody sent anything.
func TestALaneWithoutEventsHasNoBacklog(t *testing.T) {
	const slow = 3 * time.Second
	for name, c := range map[string]struct {
		lane forward.LaneLoad
		rate float64
		want time.Duration
	}{
		"idle":             {forward.LaneLoad{Ack: slow}, 0, 0},
		"idle a moment":    {forward.LaneLoad{Ack: slow}, 100, slow},
		"in flight":        {forward.LaneLoad{Ack: slow, Inflight: 1}, 0, slow},
		"waiting":          {forward.LaneLoad{Ack: slow, Waiting: 150, Inflight: 50}, 100, 2 * time.Second},
		"waiting for ever": {forward.LaneLoad{Waiting: 1}, 0, never},
		"in trouble":       {forward.LaneLoad{Trouble: 1}, 0, never},
	} {
		if got := backlog(&c.lane, c.rate); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
