package gateway

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward"
)

// deadLetter takes what can't go on in one stream: events that a plugin failed on, and events that the backend refused
// for good. They go to the stream <name>.deadletter on the embedded server, byte for byte, with the reason as attributes.
type deadLetter struct {
	g      *Gateway
	name   string // of the dead letter
	before buriedBefore
}

// newDeadLetter returns the dead letter of a stream, nil for a dead letter, which has none.
func (g *Gateway) newDeadLetter(stream string) *deadLetter {
	if _, ok := deadLetterOf(stream); ok {
		return nil
	}
	return &deadLetter{g: g, name: stream + event.DeadLetterSuffix}
}

// take stores events of one request and returns when they have come as far as b.Ack asks.
func (d *deadLetter) take(ctx context.Context, b *event.Batch) error {
	s, err := d.g.openDeadLetter(ctx, d.name)
	if err != nil {
		return err
	}
	b.Stream = d.name
	return s.Accept(ctx, b)
}

// Bury stores an event that the backend refused. See forward.DeadLetter.
func (d *deadLetter) Bury(ctx context.Context, r *forward.Refused) error {
	if r.Again {
		done, err := d.before.has(ctx, d, r.Partition, r.Number)
		if err != nil {
			return &forward.SendError{Reason: "deadletter", Err: fmt.Errorf("dead letter: %w", err)}
		}
		if done {
			return nil
		}
	}
	e := r.Event
	e.Attrs = attributes(e.Attrs, "code", string(r.Code), "reason", r.Reason, "batch_id", r.Batch, "index", strconv.Itoa(r.Index),
		"partition", strconv.Itoa(int(r.Partition)), "number", strconv.FormatUint(r.Number, 10), "producer", r.Producer)
	b := &event.Batch{ID: r.Batch, Producer: []byte(r.Producer), Arrived: time.Now().UnixNano(), Ack: event.Durable, Events: []event.Event{e}}
	err := d.take(ctx, b)
	switch p, ok := errors.AsType[*event.Problem](err); {
	case err == nil && b.Events[0].Verdict != event.Keep:
		d.dropped(r)
		return &forward.SendError{Refused: true, Code: b.Errors[0].Code, Reason: "deadletter", Err: errors.New(b.Errors[0].Detail)}
	case err == nil:
		d.g.deadLettered.WithLabelValues(strings.TrimSuffix(d.name, event.DeadLetterSuffix), string(r.Code)).Inc()
		return nil
	case ok:
		return &forward.SendError{Code: p.Code, Reason: "deadletter", Err: fmt.Errorf("dead letter: %w", err)}
	}
	return &forward.SendError{Reason: "deadletter", Err: fmt.Errorf("dead letter: %w", err)}
}

// attributes returns an entry's attributes: pairs of a name and a value, without those that are empty, and behind them
// those that the event had, whose names get ce_ in front; those of a replay become the entry's own.
func attributes(had []event.Attr, pairs ...string) (all []event.Attr) {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			all = append(all, event.Attr{Name: []byte(pairs[i]), Value: []byte(pairs[i+1])})
		}
	}
	for _, a := range had {
		if own, ok := ownName(a.Name); ok {
			all = append(all, event.Attr{Name: []byte(own), Value: a.Value})
			continue
		}
		all = append(all, event.Attr{Name: append([]byte(prefix), a.Name...), Value: a.Value})
	}
	return all
}
