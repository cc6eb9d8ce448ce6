package gateway

import (
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/window"
)

// seenSize is what a trial needs for the id of an event: its place in two tables.
const seenSize = 2 * refSize

// try finds out what would become of events whose keys are set, and changes nothing.
func (s *stream) try(b *event.Batch) error {
	s.current.Load().traceKeys(b)
	if b.HasIDs && !s.current.Load().config.ID.None {
		if unpaid := b.Pay(seenSize * int64(len(b.Events))); unpaid != nil {
			return unpaid
		}
		seen, now := map[window.ID]bool{}, time.Now()
		for _, r := range s.identities(b, nil) {
			if seen[r.ID] || s.ids.Known(r.ID, now) {
				b.Events[r.Place].Verdict = event.Duplicate
			}
			seen[r.ID] = true
		}
		b.Trace("id")
	}
	s.partitioner.Preview(b)
	return nil
}

// traceKeys says where the keys are from that no plugin gave.
func (d *definition) traceKeys(b *event.Batch) {
	for i := range b.Traces {
		if t := &b.Traces[i]; t.KeyFrom == "key" {
			t.KeyFrom = d.key.From(b, &b.Events[i])
		}
	}
}

// tryUnmade is try for a stream that the first event would make, with this definition. Which partition a key gets is not
// known before.
func (d *definition) tryUnmade(b *event.Batch) {
	d.id.Fill(b)
	b.Trace("id")
	d.key.FillKeys(b)
	b.Trace("key")
	d.traceKeys(b)
	for i := range b.Events {
		b.Events[i].Slot, b.Events[i].Partition = event.NoSlot, -1
	}
}
