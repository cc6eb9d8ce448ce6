package gateway

import (
	"context"
	"time"

	"github.com/headgate-io/headgate/admin"
	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/forward/jetstream"
	"github.com/headgate-io/headgate/sdk/consume"
)

// reconcile finds out what has become of letters that were handed over while nobody noted it. Those that can't be found are
// open again.
func (g *Gateway) reconcile(ctx context.Context, turn *replayTurn, book *letterBook) error {
	if book.Handed == nil {
		return nil
	}
	if h := turn.left(); h != nil { // of this process
		select {
		case <-h.done:
			if h.err == nil {
				h.settle(book, &admin.ReplaySums{})
				book.Handed = nil
				return book.save(ctx)
			}
		case <-ctx.Done():
			turn.leave(h)
			return ctx.Err()
		}
	}
	if err := g.findReplayed(ctx, book); err != nil {
		return err
	}
	if err := g.findBuried(ctx, book); err != nil {
		return err
	}
	g.log.Info("an earlier replay was cut off: what has become of its last letters is noted", "stream", book.stream)
	book.Handed = nil
	return book.save(ctx)
}

// findReplayed settles letters that are in their stream. What is on its way there from an earlier process is waited for.
func (g *Gateway) findReplayed(ctx context.Context, book *letterBook) error {
	s, ok := (*g.streams.Load())[book.stream]
	if !ok || book.Handed.After == nil || s.delivery.bus == nil {
		return nil
	}
	for end := time.Now().Add(steerTimeout); s.forwarder.Inherited() > 0; {
		if !pauseFor(ctx, 10*time.Millisecond) {
			return ctx.Err()
		}
		if time.Now().After(end) {
			return event.Problemf(event.BackendUnavailable, "a replay was cut off, and its stream still waits for its backend: ask again when that has taken what the spool has")
		}
	}
	q := jetstream.Query{Stream: book.stream, After: book.Handed.After}
	return readProblem(s.delivery.bus.reader.Read(ctx, q, func(m jetstream.Message) error {
		if err := consume.Decode(m.Payload, m.ContentEncoding, m.ContentType, func(e consume.Event) error {
			for _, a := range e.Attrs {
				if string(a.Name) == replayAttr {
					book.settleHanded(a.Value)
				}
			}
			return nil
		}); err != nil {
			g.log.Error("a stored run does not decode", "stream", book.stream, "run", m.ID, "error", err)
		}
		return nil
	}))
}

// findBuried settles letters that are letters again.
func (g *Gateway) findBuried(ctx context.Context, book *letterBook) error {
	q := admin.Query{Stream: book.stream + event.DeadLetterSuffix, Partition: admin.AllPartitions}
	return g.ReadRows(ctx, q, func(rows []admin.Row) error {
		for i := range rows {
			for _, a := range rows[i].Attrs {
				if string(a.Name) == replayOfAttr {
					book.settleHanded(a.Value)
				}
			}
		}
		return nil
	})
}

// settleHanded settles the letter of that name, if it was handed over.
func (b *letterBook) settleHanded(name []byte) {
	if gateway, number, ok := parseLetterName(name); ok && b.Handed.Has(gateway, number) {
		b.Settle(gateway, number, number)
	}
}
