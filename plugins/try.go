package plugins

import (
	"context"
	"errors"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/jsonscan"
)

// Tried is what a plugin made of events on which it was tried.
type Tried struct {
	Events []TriedEvent
	Kept   int
	Filtered,
	Rejected, // with those that are not what the stream takes
	Failed int // of the rejected: on which the plugin failed
	Cost   float64 // ns of the guest's calls for an event that it saw
	Memory int64   // bytes, the largest an instance had
}

// TriedEvent is what became of one event, and why it was refused.
type TriedEvent struct {
	Outcome
	Detail string `json:"detail,omitempty"`
}

// Try runs a step over events, on one instance of its own, in no metric and with nothing stored. The error is an
// *event.Problem when the plugin does not start with the configuration, or ctx ended.
func (h *Host) Try(ctx context.Context, st Step, syntax event.Syntax, events [][]byte) (*Tried, error) {
	st.apart, st.Stage, st.OnError = true, Active, Policy{Action: Reject} // so that each failure is named
	chain, err := h.NewChain(ctx, []Step{st}, Rules{})
	if err != nil {
		return nil, err
	}
	b := &event.Batch{Stream: "trial", Syntax: syntax, Trial: true, Arrived: time.Now().UnixNano()}
	scanner := jsonscan.New(defaultDepth, nil)
	for i, data := range events {
		b.Events = append(b.Events, event.Event{Data: data, Slot: event.NoSlot, Child: event.NoSlot})
		if syntax != event.JSON {
			continue
		}
		if f := scanner.Check(data); f.Code != "" {
			b.RejectAt(i, f.Offset, f.Code, f.Detail)
		}
	}
	seen := len(events) - b.Counts().Rejected
	if err := chain.Process(ctx, b); err != nil {
		return nil, errors.Join(err, chain.Retire())
	}
	t := triedOf(b)
	bill := chain.places[0].active.bill
	t.Cost, t.Memory = float64(bill.nanoseconds.Load())/float64(max(seen, 1)), bill.memory.Load()
	return t, chain.Retire()
}

func triedOf(b *event.Batch) *Tried {
	t := &Tried{Events: make([]TriedEvent, len(b.Events))}
	faults := map[int]event.Error{}
	for _, e := range b.Errors {
		faults[e.Index] = e
	}
	for i := range b.Events {
		e := &b.Events[i]
		t.Events[i] = TriedEvent{OutcomeOf(e, b.Original(i), faults[i]), faults[i].Detail}
		switch e.Verdict {
		case event.Keep:
			t.Kept++
		case event.Filtered:
			t.Filtered++
		default:
			t.Rejected++
		}
		if faults[i].Code == event.PluginFailed {
			t.Failed++
		}
	}
	return t
}
