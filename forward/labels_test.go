package forward

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/headgate-io/headgate/event"
)

// Ids and attributes travel in the metadata of a frame and fill it as the data do: else a frame of small events with large
// attributes could outgrow the backend's largest message.
func TestFramesAreCutByIdsAndAttributes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		cfg := config(1)
		cfg.FrameBytes, cfg.MaxRun = 64<<10, 1
		f := start(t, cfg, m, Deps{})
		b := batch(event.Delivered)
		for i := range 100 {
			b.Events = append(b.Events, event.Event{Data: []byte("1"), Slot: event.NoSlot, Child: event.NoSlot, ID: fmt.Appendf(nil, "%01000d", i),
				Attrs: []event.Attr{{Name: []byte("subject"), Value: []byte(fmt.Sprint(i) + strings.Repeat("x", 9000))}}})
		}
		waitDelivered(t, forward(t, f, b))
		runs := m.sent()
		for _, run := range runs {
			if len(run.Payload) > 80<<10 {
				t.Errorf("a frame of %d events has %d bytes", run.Events, len(run.Payload))
			}
		}
		if n := len(events(t, runs)); n != 100 || len(runs) < 10 {
			t.Errorf("%d events in %d runs", n, len(runs))
		}
	})
}
