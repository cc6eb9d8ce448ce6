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
	g    *Gateway
	name string // of the dead letter
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

// bury stores the events of b that were set aside. Those that could not be stored are refused instead, with the reason
// they had. The error is an *event.Problem that says that what is stored is unknown.
func (d *deadLetter) bury(ctx context.Context, b *event.Batch) error {
	if len(b.Letters) == 0 {
		return nil
	}
	entries := entriesOf(b)
	err := d.take(ctx, entries)
	if isUnknown(err) {
		return err
	}
	if err != nil {
		d.g.log.Warn("the dead letter takes nothing: the events are refused", "stream", b.Stream, "events", len(b.Letters), "error", err)
	}
	for i, l := range b.Letters {
		if err != nil || entries.Events[i].Verdict != event.Keep {
			b.Reject(l.Index, l.Code, l.Detail+"; and the dead letter did not take it")
			continue
		}
		d.g.deadLettered.WithLabelValues(b.Stream, string(l.Code)).Inc()
	}
	return nil
}

// refuseLetters refuses what was set aside: mode=strict stores all or nothing.
func refuseLetters(b *event.Batch) {
	for _, l := range b.Letters {
		b.Reject(l.Index, l.Code, l.Detail)
	}
}

// entriesOf makes the entries for the letters of b, in their order.
func entriesOf(b *event.Batch) *event.Batch {
	entries := &event.Batch{ID: b.ID, Producer: b.Producer, TraceParent: b.TraceParent, TraceState: b.TraceState, RequestID: b.RequestID, Arrived: b.Arrived, Chain: b.Chain, Ack: b.Ack}
	for _, l := range b.Letters {
		e := &b.Events[l.Index]
		entries.Events = append(entries.Events, event.Event{
			Data: b.Original(l.Index), Key: e.Key, HasKey: e.HasKey, ID: e.ID, Time: e.Time,
			Attrs: attributes(e.Attrs, "code", string(l.Code), "reason", l.Detail, "plugin", l.Plugin, "digest", l.Digest,
				"batch_id", b.ID, "index", strconv.Itoa(l.Index), "producer", string(b.Producer)),
		})
	}
	return entries
}

// Bury stores an event that the backend refused. See forward.DeadLetter.
func (d *deadLetter) Bury(ctx context.Context, r *forward.Refused) error {
	e := r.Event
	e.Attrs = attributes(e.Attrs, "code", string(r.Code), "reason", r.Reason, "batch_id", r.Batch, "index", strconv.Itoa(r.Index),
		"partition", strconv.Itoa(int(r.Partition)), "number", strconv.FormatUint(r.Number, 10), "producer", r.Producer)
	b := &event.Batch{ID: r.Batch, Producer: []byte(r.Producer), Arrived: time.Now().UnixNano(), Ack: event.Durable, Events: []event.Event{e}}
	err := d.take(ctx, b)
	switch p, ok := errors.AsType[*event.Problem](err); {
	case err == nil && b.Events[0].Verdict != event.Keep:
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
// those that the event had, whose names get ce_ in front.
func attributes(had []event.Attr, pairs ...string) (all []event.Attr) {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			all = append(all, event.Attr{Name: []byte(pairs[i]), Value: []byte(pairs[i+1])})
		}
	}
	for _, a := range had {
		all = append(all, event.Attr{Name: append([]byte("ce_"), a.Name...), Value: a.Value})
	}
	return all
}
